/*
 * palette.h - the colours of figures: one meaning has one colour in all of them.
 *
 * Example: palette_of("gemm") is the same blue in a breakdown and in a timeline; palette_tint(COLOUR_BLUE, 0.5) is lighter.
 *
 * The colours are those of Okabe and Ito ("Color Universal Design", 2008), which readers with any common colour-vision
 * deficiency can distinguish, with tints and shades. Colours are 0xRRGGBB.
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

/* The colour of a class of work in a step's breakdown, or of a use of time in a run; grey for other names. */
uint32_t palette_of(const char *name);
/* The colour of the i-th of several equals (tables of measurements). There are twelve, so markers should differ too. */
uint32_t palette_series(int i);
/* A colour mixed with white; `whiteness` from 0 (the colour) to 1 (white). */
uint32_t palette_tint(uint32_t colour, double whiteness);

#endif
