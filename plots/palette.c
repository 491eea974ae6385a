/* palette.c - the colours of classes of work and of uses of time. */
#include "plots/palette.h"

#include <stddef.h>
#include <string.h>

/* Compute in blues, what comes once a step in greens, exchanges in oranges, waiting in grey. */
static const struct {
    const char *name;
    uint32_t colour;
} meanings[] = {
    {"gemm", COLOUR_BLUE},        {"attention", COLOUR_SKY},     {"memory_bound", 0xA6D8F3},    {"embedding", 0x004D7A},
    {"head", 0x3B8FC2},           {"experts", 0x5D4E9E},         {"recompute", COLOUR_PURPLE},  {"optimizer", COLOUR_GREEN},
    {"host", 0x7CC9B0},           {"tp_comm", COLOUR_VERMILION}, {"cp_comm", 0x8F3F00},         {"ep_comm", COLOUR_YELLOW},
    {"pp_comm", COLOUR_ORANGE},   {"dp_comm", 0xF2B48A},         {"bubble", 0xC4C4C4},          {"training", COLOUR_BLUE},
    {"useful", COLOUR_BLUE},      {"degraded", COLOUR_SKY},      {"checkpoint", COLOUR_ORANGE}, {"lost", COLOUR_VERMILION},
    {"detection", COLOUR_PURPLE}, {"waiting", COLOUR_GREY},      {"idle", COLOUR_GREY},         {"restart", COLOUR_GREEN},
    {"diagnosis", COLOUR_YELLOW}, {"human", 0x5D4E9E},           {"products", COLOUR_BLUE},     {"other", 0xA6D8F3},
    {"copies", 0x004D7A},         {"exchange", 0xC2B100},
};

uint32_t palette_of(const char *name)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(meanings[i].name, name) == 0)
            return meanings[i].colour;
    return COLOUR_GREY;
}

uint32_t palette_series(int i)
{
    static const uint32_t series[] = {COLOUR_BLUE,  COLOUR_VERMILION, COLOUR_GREEN, COLOUR_PURPLE, COLOUR_ORANGE, COLOUR_SKY,
                                      COLOUR_BLACK, 0x8F3F00,         0x5D4E9E,     0xC2B100,      COLOUR_GREY,   0x6B8E23};
    enum { N = sizeof series / sizeof *series };
    return series[(i % N + N) % N];
}

uint32_t palette_tint(uint32_t colour, double whiteness)
{
    uint32_t tinted = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double part = colour >> shift & 0xFF;
        tinted |= (uint32_t)(part + (255 - part) * whiteness + 0.5) << shift;
    }
    return tinted;
}
