/* packets_usual.c - the texts of packets.h as numbers. */
#include <math.h>
#include <string.h>

#include "sim/fabric/packets.h"

/* Not a number where the text is none: then nothing is in its bounds. */
static double usual(const char *text, enum dimension dimension)
{
    char why[160];
    double value = NAN;

    return quantity_parse(text, dimension, &value, why, sizeof why) == STATUS_OK ? value : NAN;
}

static nanos usual_time(const char *text)
{
    return nanos_from_seconds(usual(text, DIM_TIME));
}

static enum congestion usual_congestion(const char *text)
{
    return strcmp(text, congestion_name(CONGESTION_DCQCN)) == 0 ? CONGESTION_DCQCN : CONGESTION_NONE;
}

struct packets_parameters packets_usual(void)
{
    return (struct packets_parameters){.packet_bytes = usual(PACKETS_USUAL_BYTES, DIM_BYTES),
                                       .link_delay_s = -1,
                                       .switch_buffer = usual(PACKETS_USUAL_SWITCH_BUFFER, DIM_BYTES),
                                       .nic_buffer = usual(PACKETS_USUAL_NIC_BUFFER, DIM_BYTES),
                                       .pfc_alpha = usual(PACKETS_USUAL_PFC_ALPHA, DIM_FRACTION),
                                       .xon_gap = usual(PACKETS_USUAL_XON_GAP, DIM_BYTES),
                                       .congestion = usual_congestion(PACKETS_USUAL_CONGESTION),
                                       .kmin = usual(PACKETS_USUAL_KMIN, DIM_BYTES),
                                       .kmax = usual(PACKETS_USUAL_KMAX, DIM_BYTES),
                                       .pmax = usual(PACKETS_USUAL_PMAX, DIM_FRACTION),
                                       .dcqcn = {.gain = usual(PACKETS_USUAL_GAIN, DIM_FRACTION),
                                                 .cnp_interval = usual_time(PACKETS_USUAL_CNP_INTERVAL),
                                                 .alpha_timer = usual_time(PACKETS_USUAL_ALPHA_TIMER),
                                                 .rate_timer = usual_time(PACKETS_USUAL_RATE_TIMER),
                                                 .byte_counter = usual(PACKETS_USUAL_BYTE_COUNTER, DIM_BYTES),
                                                 .fast_rounds = (int)usual(PACKETS_USUAL_FAST_ROUNDS, DIM_COUNT),
                                                 .additive = usual(PACKETS_USUAL_ADDITIVE, DIM_RATE),
                                                 .hyper = usual(PACKETS_USUAL_HYPER, DIM_RATE),
                                                 .least = usual(PACKETS_USUAL_LEAST, DIM_RATE)}};
}
