#include "tests/sim/fabric/packets_usual.h"

struct packets_parameters packets_usual(double packet_bytes, enum congestion congestion)
{
    return (struct packets_parameters){.packet_bytes = packet_bytes,
                                       .link_delay_s = -1,
                                       .switch_buffer = 64e6,
                                       .nic_buffer = 2e6,
                                       .pfc_alpha = 0.125,
                                       .xon_gap = 2 * packet_bytes,
                                       .congestion = congestion,
                                       .kmin = 50e3,
                                       .kmax = 2e6,
                                       .pmax = 0.01,
                                       .dcqcn = {.gain = 1.0 / 256,
                                                 .cnp_interval = 50000,
                                                 .alpha_timer = 55000,
                                                 .rate_timer = 55000,
                                                 .byte_counter = 10e6,
                                                 .fast_rounds = 5,
                                                 .additive = 50e6,
                                                 .hyper = 500e6,
                                                 .least = 125e3}};
}
