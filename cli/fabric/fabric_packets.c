#include "cli/fabric/fabric_packets.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output/table.h"
#include "model/base/memory.h"

const char *const load_network_choices[] = {"flow", "packet", NULL};
const char *const congestion_choices[] = {"none", "dcqcn", NULL};

/* ---- options */

void fabric_packets_note_idle(struct invocation *call)
{
    for (int i = 0; i < call->n_values; i++) {
        const struct option_row *row = call->values[i].row;
        if (call->values[i].given && row->group != NULL && strcmp(row->group, PACKETS_GROUP) == 0)
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect without --network packet", row->name);
    }
}

/* Marks and what senders do about them are DCQCN's. */
static void note_without_marks(struct invocation *call)
{
    static const char *const prefixes[] = {"ecn-", "cnp-", "dcqcn-"};

    for (int i = 0; i < call->n_values; i++) {
        const struct option_value *value = &call->values[i];
        for (size_t k = 0; value->given && k < sizeof prefixes / sizeof *prefixes; k++)
            if (strncmp(value->row->name, prefixes[k], strlen(prefixes[k])) == 0)
                diag_note(&call->diags, PLACE_NONE, "--%s has no effect with --congestion none", value->row->name);
    }
}

static bool parameters_agree(struct invocation *call, const struct packets_parameters *with)
{
    char low[32], high[32];

    if (option_given(call, "pfc-alpha") && with->xoff > 0) {
        diag_error(&call->diags, PLACE_NONE, "--pfc-xoff and --pfc-alpha both set when a port is paused; specify only one");
        return false;
    }
    if (with->congestion != CONGESTION_DCQCN || with->kmin <= with->kmax)
        return true;
    diag_error(&call->diags, PLACE_NONE, "--ecn-kmin %s must not be above --ecn-kmax %s",
               quantity_write(with->kmin, DIM_BYTES, low, sizeof low), quantity_write(with->kmax, DIM_BYTES, high, sizeof high));
    return false;
}

static nanos option_nanos(const struct invocation *call, const char *name)
{
    return nanos_from_seconds(option_quantity(call, name));
}

enum status fabric_packets_parameters(struct invocation *call, struct packets_parameters *with)
{
    struct packets_parameters out = {.packet_bytes = option_quantity(call, "mtu"),
                                     .link_delay_s = option_given(call, "link-delay") ? option_quantity(call, "link-delay") : -1,
                                     .switch_buffer = option_quantity(call, "switch-buffer"),
                                     .nic_buffer = option_quantity(call, "nic-buffer"),
                                     .pfc_alpha = option_quantity(call, "pfc-alpha"),
                                     .xoff = option_given(call, "pfc-xoff") ? option_quantity(call, "pfc-xoff") : 0,
                                     .xon_gap = option_quantity(call, "pfc-xon-gap"),
                                     .congestion = (enum congestion)option_choice(call, "congestion"),
                                     .kmin = option_quantity(call, "ecn-kmin"),
                                     .kmax = option_quantity(call, "ecn-kmax"),
                                     .pmax = option_quantity(call, "ecn-pmax"),
                                     .dcqcn = {.gain = option_quantity(call, "dcqcn-g"),
                                               .cnp_interval = option_nanos(call, "cnp-interval"),
                                               .alpha_timer = option_nanos(call, "dcqcn-alpha-timer"),
                                               .rate_timer = option_nanos(call, "dcqcn-rate-timer"),
                                               .byte_counter = option_quantity(call, "dcqcn-byte-counter"),
                                               .fast_rounds = (int)option_count(call, "dcqcn-rounds"),
                                               .additive = option_quantity(call, "dcqcn-ai"),
                                               .hyper = option_quantity(call, "dcqcn-hai"),
                                               .least = option_quantity(call, "dcqcn-min-rate")}};

    if (!parameters_agree(call, &out))
        return STATUS_USAGE;
    if (out.congestion == CONGESTION_NONE)
        note_without_marks(call);
    *with = out;
    return STATUS_OK;
}

/* The options whose defaults nobody has published, that were left as they are and matter here. */
static const char *const assumed_options[] = {"switch-buffer", "pfc-xon-gap", "nic-buffer", "dcqcn-hai"};
enum { N_ASSUMED = sizeof assumed_options / sizeof assumed_options[0] };

static int assumed_find(const struct invocation *call, const struct fabric *fabric, const struct option_row **rows)
{
    bool dcqcn = option_choice(call, "congestion") == CONGESTION_DCQCN;
    bool inside = fabric->first[LAYER_NIC_UP] > 0;
    int n = 0;

    for (int i = 0; i < call->n_values; i++)
        for (int a = 0; a < N_ASSUMED; a++) {
            const struct option_value *value = &call->values[i];
            if (!value->given && strcmp(value->row->name, assumed_options[a]) == 0 &&
                (strcmp(value->row->name, "nic-buffer") != 0 || inside) && (strcmp(value->row->name, "dcqcn-hai") != 0 || dcqcn))
                rows[n++] = value->row;
        }
    return n;
}

/* ---- text and CSV */

static void quantile_table(struct invocation *call, const struct packets_summary *s, const double *fair_rates)
{
    struct table table = {0};

    table_column(&table, "of connections", NULL, ALIGN_LEFT);
    table_column(&table, "fair rate", "GB/s", ALIGN_RIGHT);
    table_column(&table, "rate", "GB/s", ALIGN_RIGHT);
    table_column(&table, "of its fair rate", "%", ALIGN_RIGHT);
    table_column(&table, "end", "ms", ALIGN_RIGHT);
    table_column(&table, "after fair end", "%", ALIGN_RIGHT);
    for (int i = 0; i < N_STATISTICS; i++) {
        table_cell(&table, "%s", load_statistic_names[i]);
        table_cell(&table, "%.2f", fair_rates[i] / 1e9);
        table_cell(&table, "%.2f", s->rates[i] / 1e9);
        table_cell(&table, "%.1f", 100 * s->shares[i]);
        table_cell(&table, "%.3f", 1e3 * s->ends[i]);
        table_cell(&table, "%.1f", 100 * (s->delays[i] - 1));
    }
    table_write(&table, call);
    table_free(&table);
}

static void worst_rows(struct table *table, const struct fabric *fabric, double seconds, const char *why,
                       const struct worst_link *worst, int n)
{
    char name[96];

    for (int i = 0; i < n; i++) {
        const struct packets_link *seen = &worst[i].seen;
        table_cell(table, "%s", i == 0 ? why : "");
        table_cell(table, "%s", fabric_link_name(fabric, worst[i].link, name, sizeof name));
        table_cell(table, "%llu", (unsigned long long)seen->pauses);
        table_cell(table, "%.1f", (double)seen->paused / 1e3);
        table_cell(table, "%.1f", 100 * nanos_to_seconds(seen->paused) / seconds);
        table_cell(table, "%.1f", (double)seen->deepest / 1e3);
        table_cell(table, "%llu", (unsigned long long)seen->marks);
    }
}

void worst_links_write(const struct invocation *call, const struct fabric *fabric, const struct worst_links *worst,
                       const char *title)
{
    struct table table = {0};

    table_column(&table, "", NULL, ALIGN_LEFT);
    table_column(&table, "link", NULL, ALIGN_LEFT);
    table_column(&table, "pauses", NULL, ALIGN_RIGHT);
    table_column(&table, "paused", "us", ALIGN_RIGHT);
    table_column(&table, "of the time", "%", ALIGN_RIGHT);
    table_column(&table, "deepest queue", "kB", ALIGN_RIGHT);
    table_column(&table, "marks", NULL, ALIGN_RIGHT);
    worst_rows(&table, fabric, worst->seconds, "most paused", worst->paused, worst->n_paused);
    worst_rows(&table, fabric, worst->seconds, "deepest", worst->deepest, worst->n_deep);
    if (worst->n_paused + worst->n_deep > 0) {
        fprintf(call->out, "%s\n", title);
        table_write_text(&table, call);
    }
    table_free(&table);
}

void link_seen_write(FILE *out, const struct packets *packets, uint32_t link)
{
    struct packets_link seen = packets_link(packets, link);

    fprintf(out, "%lld,%llu,%llu,%.9g,", (long long)seen.deepest, (unsigned long long)seen.marks, (unsigned long long)seen.pauses,
            nanos_to_seconds(seen.paused));
}

void packets_totals_write(const struct invocation *call, const struct fabric *fabric, const struct packets_summary *s)
{
    char paused[32], packets[32], marks[32], cnps[32], pauses[32];
    const struct option_row *rows[N_ASSUMED];

    fprintf(call->out, "%s packets: %s marks, %s CNPs; %s PFC pauses on %.6g link%s, %s in all; fullest buffer %.1f %%\n",
            grouped((int64_t)s->packets, packets, sizeof packets), grouped((int64_t)s->marks, marks, sizeof marks),
            grouped((int64_t)s->cnps, cnps, sizeof cnps), grouped((int64_t)s->pauses, pauses, sizeof pauses), s->paused_links,
            plural((int64_t)s->paused_links), quantity_format(s->paused_s, DIM_TIME, paused, sizeof paused), 100 * s->fullest);
    int n = assumed_find(call, fabric, rows);
    for (int i = 0; i < n; i++)
        fprintf(call->out, "%s--%s %s%s", i == 0 ? "assumed: " : ", ", rows[i]->name, rows[i]->initial, i == n - 1 ? "\n" : "");
}

void packets_summary_write(struct invocation *call, const struct fabric *fabric, const struct packets_summary *s,
                           const double *fair_rates)
{
    quantile_table(call, s, fair_rates);
    if (call->format != FORMAT_TEXT)
        return;
    fputc('\n', call->out);
    packets_totals_write(call, fabric, s);
    worst_links_write(call, fabric, &s->worst, s->repeats > 1 ? "\nlinks under the last seed" : "");
}

/* ---- JSON */

static json_t *statistics_json(const double *statistics)
{
    json_t *object = json_object();

    for (int i = 0; i < N_STATISTICS; i++)
        json_object_set_new(object, load_statistic_keys[i], json_real(statistics[i]));
    return object;
}

static json_t *worst_json(const struct fabric *fabric, const struct worst_link *worst, int n)
{
    json_t *array = json_array();
    char name[96];

    for (int i = 0; i < n; i++) {
        const struct packets_link *seen = &worst[i].seen;
        json_array_append_new(
            array, json_pack("{s:s, s:I, s:f, s:I, s:I}", "link", fabric_link_name(fabric, worst[i].link, name, sizeof name),
                             "pauses", (json_int_t)seen->pauses, "paused_s", nanos_to_seconds(seen->paused),
                             "deepest_queue_bytes", (json_int_t)seen->deepest, "marks", (json_int_t)seen->marks));
    }
    return array;
}

json_t *packets_parameters_json(const struct packets_parameters *with)
{
    const struct dcqcn_parameters *d = &with->dcqcn;
    json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:f}", "congestion", congestion_name(with->congestion), "mtu_bytes",
                               with->packet_bytes, "switch_buffer_bytes", with->switch_buffer, "nic_buffer_bytes",
                               with->nic_buffer, "pfc_xon_gap_bytes", with->xon_gap);

    if (with->xoff > 0)
        json_object_set_new(object, "pfc_xoff_bytes", json_real(with->xoff));
    else
        json_object_set_new(object, "pfc_alpha", json_real(with->pfc_alpha));
    if (with->link_delay_s >= 0)
        json_object_set_new(object, "link_delay_s", json_real(with->link_delay_s));
    if (with->congestion == CONGESTION_DCQCN)
        json_object_update_new(object,
                               json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:f}", "ecn_kmin_bytes",
                                         with->kmin, "ecn_kmax_bytes", with->kmax, "ecn_pmax", with->pmax, "cnp_interval_s",
                                         nanos_to_seconds(d->cnp_interval), "dcqcn_g", d->gain, "dcqcn_alpha_timer_s",
                                         nanos_to_seconds(d->alpha_timer), "dcqcn_rate_timer_s", nanos_to_seconds(d->rate_timer),
                                         "dcqcn_byte_counter_bytes", d->byte_counter, "dcqcn_rounds", d->fast_rounds,
                                         "dcqcn_ai_Bps", d->additive, "dcqcn_hai_Bps", d->hyper, "dcqcn_min_rate_Bps", d->least));
    return object;
}

void worst_links_json(const struct fabric *fabric, const struct worst_links *worst, json_t *object)
{
    json_object_set_new(object, "most_paused", worst_json(fabric, worst->paused, worst->n_paused));
    json_object_set_new(object, "deepest", worst_json(fabric, worst->deepest, worst->n_deep));
}

json_t *packets_assumed_json(const struct invocation *call, const struct fabric *fabric)
{
    const struct option_row *rows[N_ASSUMED];
    int n = assumed_find(call, fabric, rows);
    json_t *assumed = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(assumed, json_string(rows[i]->name));
    return assumed;
}

json_t *packets_summary_json(const struct invocation *call, const struct fabric *fabric, const struct packets_summary *s)
{
    json_t *object = json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "parameters",
                               packets_parameters_json(&s->with), "seconds", s->seconds, "packets", s->packets, "packet_hops",
                               s->hops, "events", s->events, "marks", s->marks, "cnps", s->cnps, "pauses", s->pauses, "paused_s",
                               s->paused_s, "paused_links", s->paused_links, "fullest_buffer", s->fullest);

    json_object_set_new(object, "rates_Bps", statistics_json(s->rates));
    json_object_set_new(object, "of_fair_rate", statistics_json(s->shares));
    json_object_set_new(object, "ends_s", statistics_json(s->ends));
    json_object_set_new(object, "over_fair_end", statistics_json(s->delays));
    json_object_set_new(object, "assumed", packets_assumed_json(call, fabric));
    json_object_set_new(object, "last_seconds", json_real(s->worst.seconds)); /* of the seed that the links are of */
    worst_links_json(fabric, &s->worst, object);
    return object;
}
