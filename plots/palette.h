/*
 * palette.h - one meaning, one colour, in every figure.
 *
 * The colours are Okabe and Ito's, which readers with any of the common colour-vision deficiencies tell apart ("Color Universal
 * Design", 2008), and tints and shades of them. Colours are 0xRRGGBB.
 */
#ifndef MSIM_PLOTS_PALETTE_H
#define MSIM_PLOTS_PALETTE_H

#include <stdint.h>

enum {
    COLOUR_BLUE = 0x0072B2,
    COLOUR_SKY = 0x56B4E9,
    COLOUR_GREEN = 0x009E73,
    COLOUR_YELLOW = 0xF0E442,
    COLOUR_ORANGE = 0xE69F00,
    COLOUR_VERMILION = 0xD55E00,
    COLOUR_PURPLE = 0xCC79A7,
    COLOUR_GREY = 0x9A9A9A,
    COLOUR_BLACK = 0x222222,
};

/* Of a class of work in a step's breakdown or of a use of time in a run; grey for a name nobody knows. */
uint32_t palette_of(const char *name);
/* Of the i-th of several equals (tables of measurements): twelve colours, then again; markers should differ too. */
uint32_t palette_series(int i);
/* Towards white: 0 the colour itself, 1 white. */
uint32_t palette_tint(uint32_t colour, double whiteness);

#endif
