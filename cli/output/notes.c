#include "cli/output/notes.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/terminal.h"
#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/base/number_text.h"
#include "model/base/order.h"
#include "model/base/units.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/kernel/oversubscription.h"
#include "model/cost/step/closed_form.h"
#include "model/cost/step/packing.h"
#include "model/cost/work/adapter.h"

enum { NOTE_WIDTH = 100 };

/* --- paragraphs --- */

/* Bytes of a text that a line of `width` columns has room for: up to a blank; at least one word. */
static size_t line_length(const char *text, int width)
{
    size_t blanks = strspn(text, " "), best = blanks + strcspn(text + blanks, " \n");
    int columns = 0;
    for (size_t i = 0; text[i] && text[i] != '\n'; i++) {
        if (text[i] == ' ' && i > best)
            best = i;
        columns += ((unsigned char)text[i] & 0xC0) != 0x80; /* not inside a character of UTF-8 */
        if (columns > width)
            return best;
    }
    return strcspn(text, "\n");
}

static void write_wrapped(const char *text, int indent, int width, FILE *out)
{
    for (bool first = true; *text; first = false) {
        size_t n = line_length(text, first ? width : width - indent);
        fprintf(out, "%*s%.*s\n", first ? 0 : indent, "", (int)n, text);
        text += n;
        text += *text == '\n' ? 1 : strspn(text, " ");
    }
}

void note_write(FILE *out, int indent, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int width = terminal_width(out);
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    size_t blank = n >= 0 ? strspn(text, "\n") : 0; /* empty lines before it */
    if (n >= 0)
        fprintf(out, "%.*s", (int)blank, text);
    if (n >= 0)
        write_wrapped(text + blank, indent, width > 0 && width < NOTE_WIDTH ? width : NOTE_WIDTH, out);
    if (n > 0 && text[n - 1] == '\n') /* an empty line behind it */
        fputc('\n', out);
    free(text);
}

/* --- which parameters are trained --- */

void trained_write(const struct setting *setting, feature_set features, FILE *out)
{
    const struct adapter *adapter = &setting->job->adapter;
    char trained[32], all[32], targets[64], wholes[64];
    if (!job_adapts(setting->job))
        return;
    struct adapted_model model = adapted_model_of(setting, features);
    note_write(out, 9, "trains   %s of %s parameters: adapters of rank %lld on %s%s%s",
               quantity_format(model.trained, DIM_COUNT, trained, sizeof trained),
               quantity_format(model.total, DIM_COUNT, all, sizeof all), (long long)adapter->rank,
               adapter_targets_text(adapter->targets, ", ", targets, sizeof targets), adapter->whole ? "; in full: " : "",
               adapter_wholes_text(adapter->whole, ", ", wholes, sizeof wholes));
}

#define PARAMETERS_ROWS(ROW)                                                                                                     \
    ROW(adapted_model, parameters, as_real(s->total), "", JSON, "parameters of the model, where adapters are trained")           \
    ROW(adapted_model, trained_parameters, as_real(s->trained), "", JSON, "those that are trained")
RESULT_ROWS(parameters_rows, PARAMETERS_ROWS)

void trained_json(const struct setting *setting, feature_set features, json_t *object)
{
    if (!job_adapts(setting->job))
        return;
    struct adapted_model model = adapted_model_of(setting, features);
    rows_json(parameters_rows, &model, object);
}

/* --- masks between documents --- */

void packed_write(const struct setting *setting, feature_set features, FILE *out)
{
    const struct documents *documents = &setting->job->documents;
    char mean[32], text[128];
    if (!job_masks_documents(setting->job))
        return;
    struct packing packing = packing_of(setting, features);
    if (documents->mean < 100)
        snprintf(mean, sizeof mean, "%.3g", documents->mean);
    else
        grouped((int64_t)(documents->mean + 0.5), mean, sizeof mean);
    snprintf(text, sizeof text, "packs    documents of %s tokens on average (spread %g)", mean, documents->spread);
    if (packing.all_pairs <= 0)
        note_write(out, 9, "%s; no layer has attention", text);
    else
        note_write(out, 9, "%s; masks between documents keep %.1f %% of the attention pairs%s", text,
                   100 * packing.pairs / packing.all_pairs,
                   packing.skips ? "" : ", but all pairs are computed because attention is not fused");
}

static double pairs_left_pct(const struct packing *packing)
{
    return packing->all_pairs > 0 ? 100 * packing->pairs / packing->all_pairs : 100;
}

#define DOCUMENTS_ROWS(ROW)                                                                                                      \
    ROW(packing, pairs_left_pct, as_real(pairs_left_pct(s)), "%", JSON, "attention pairs that masks between documents keep")     \
    ROW(packing, computed_pct, as_real(s->skips ? pairs_left_pct(s) : 100), "%", JSON, "attention pairs that are computed")
RESULT_ROWS(documents_rows, DOCUMENTS_ROWS)

json_t *packed_json(const struct setting *setting, feature_set features)
{
    if (!job_masks_documents(setting->job))
        return NULL;
    struct packing packing = packing_of(setting, features);
    return rows_object(documents_rows, &packing);
}

/* --- uneven experts --- */

static double step_seconds(const struct setting *setting, const struct layout *layout)
{
    struct closed_form *form = closed_form_create(setting);
    struct step_estimate estimate;
    closed_form_estimate(form, layout, &estimate);
    closed_form_destroy(form);
    return estimate.step_s;
}

/* What the step would be shorter if the same copies of tokens were spread evenly, as the closed form has it. */
static double waiting_seconds(const struct setting *setting, const struct layout *layout)
{
    struct job even = *setting->job;
    struct setting spread = *setting;
    expert_load_spread(&even.load);
    spread.job = &even;
    return fmax(0, step_seconds(setting, layout) - step_seconds(&spread, layout));
}

/* In per cent, of two digits where that many are known: a share below a ten-thousandth of one is not worth them. */
static const char *share_text(double share, char *buffer, size_t size)
{
    double percent = 100 * share;
    if (percent <= 0)
        return "none";
    if (percent < 1e-4)
        return "less than 0.0001 %";
    snprintf(buffer, size, percent < 9.95 ? "%.2g %%" : "%.0f %%", percent);
    return buffer;
}

void routing_write(const struct setting *setting, FILE *out)
{
    const struct expert_load *load = &setting->job->load;
    char share[32], text[192] = "";
    if (!expert_load_given(load))
        return;
    if (load->busiest > 1)
        text_append(text, sizeof text, "the busiest receives %.4g times the mean%s", load->busiest,
                    load->capacity > 0 ? "; " : "");
    if (load->capacity > 0)
        text_append(text, sizeof text, "each computes %s %.4g times the mean; %s of the token copies are dropped",
                    load->padded ? "exactly" : "at most", load->capacity, share_text(load->dropped, share, sizeof share));
    note_write(out, 9, "experts  %s", text);
}

static bool is_even(const struct expert_load *load, const struct layout *layout)
{
    return !(expert_load_rank(load, layout->ep) > expert_load_mean(load)) &&
           !(expert_load_largest(load, layout->ep) > expert_load_mean(load));
}

void routing_write_waiting(const struct setting *setting, const struct layout *layout, FILE *out)
{
    const struct expert_load *load = &setting->job->load;
    char text[32];
    bool dropping = load->capacity > 0 && !load->padded;
    if (!expert_load_given(load) || layout->ep == 1 || is_even(load, layout))
        return;
    double waiting = waiting_seconds(setting, layout);
    note_write(out, 2, "of this, %s is waiting for the busiest of %d ranks, whose experts receive %.3g times the mean%s\n",
               quantity_format(waiting, DIM_TIME, text, sizeof text), layout->ep,
               expert_load_rank(load, layout->ep) / expert_load_mean(load),
               dropping && load->dropped > 0 ? " after dropping" : "");
}

struct routing {
    const struct expert_load *load;
    int ep;
    double waiting_s;
};

#define EXPERTS_ROWS(ROW)                                                                                                        \
    ROW(routing, busiest_expert, as_real(fmax(1, s->load->busiest)), "", JSON, "tokens of the busiest expert over the mean")     \
    ROW(routing, busiest_rank, as_real(expert_load_rank(s->load, s->ep)), "", JSON, "the same of the busiest rank")              \
    ROW(routing, mean_rank, as_real(expert_load_mean(s->load)), "", JSON, "of an average rank; 1 without a capacity")            \
    ROW(routing, dropped_pct, as_real(100 * s->load->dropped), "%", JSON, "dropped copies of tokens")                            \
    ROW(routing, waiting_s, as_real(s->waiting_s), "s", JSON, "time that other ranks wait for the busiest one")
RESULT_ROWS(experts_rows, EXPERTS_ROWS)

json_t *routing_json(const struct setting *setting, const struct layout *layout)
{
    const struct expert_load *load = &setting->job->load;
    if (!expert_load_given(load))
        return NULL;
    const struct routing routing = {load, layout->ep, is_even(load, layout) ? 0 : waiting_seconds(setting, layout)};
    return rows_object(experts_rows, &routing);
}

/* --- oversubscribed fabrics --- */

/* Where trees are asked for what is reduced and not divided takes them; where NCCL chooses, only what is short. */
static bool takes_trees(const struct layout *layout, const struct cluster *cluster, enum group_kind kind)
{
    if (cluster->collective_algorithm != ALGORITHM_TREE)
        return false;
    switch (kind) {
    case GROUP_TP: return !layout->sequence_parallel;
    case GROUP_DP:
    case GROUP_EXPERT_DP: return layout->zero == 0;
    case GROUP_REPLICA: return true;
    default: return false;
    }
}

static double load_of(const struct layout *layout, const struct cluster *cluster, enum group_kind kind)
{
    const struct group_span span = replica_span(layout, cluster, kind);

    if (kind == GROUP_EP)
        return oversubscription_of_all_to_all(cluster, span);
    if (takes_trees(layout, cluster, kind))
        return oversubscription_of_trees(cluster, span);
    return kind == GROUP_PP ? oversubscription_of_stages(cluster, span) : oversubscription_of_rings(cluster, span);
}

double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind)
{
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_EP, GROUP_PP};
    bool narrow = cluster_leaf_oversubscription(cluster) > 1 || cluster_pod_oversubscription(cluster) > 1;
    double most = narrow ? 0 : 1; /* ways around fill a dragonfly that would be wide enough */

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double load = load_of(layout, cluster, kinds[i]);
        if (load > most) {
            most = load;
            *kind = kinds[i];
            narrow = true;
        }
    }
    return narrow ? most : 0;
}

double oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size)
{
    double leaf = cluster_leaf_oversubscription(cluster), pod = cluster_pod_oversubscription(cluster);
    enum group_kind kind = GROUP_DP;
    char ratio[32];
    double load = oversubscribed_load(layout, cluster, &kind);

    buffer[0] = '\0';
    if (load <= 0)
        return 0;
    text_append(buffer, size, "the fabric is oversubscribed (");
    if (leaf > 1)
        text_append(buffer, size, "%s:1 above leaves", ratio_text(leaf, ratio, sizeof ratio));
    if (pod > 1)
        text_append(buffer, size, "%s%s:1 above pods", leaf > 1 ? ", " : "", ratio_text(pod, ratio, sizeof ratio));
    if (leaf <= 1 && pod <= 1)
        text_append(buffer, size, "on a dragonfly's indirect paths");
    text_append(buffer, size, "); at full NIC rate, ");
    if (kind == GROUP_PP)
        text_append(buffer, size, "messages between pipeline stages");
    else
        text_append(buffer, size,
                    kind == GROUP_EP                     ? "all-to-all of %s"
                    : takes_trees(layout, cluster, kind) ? "trees of %s in order"
                                                         : "rings of %s in order",
                    group_kind_name(kind));
    text_append(buffer, size, " load it to %.0f %%", 100 * load);
    if (load > 1.005)
        text_append(buffer, size, ", so %s %s times as long (included)", kind == GROUP_PP ? "those that leave take" : "they take",
                    ratio_text(load, ratio, sizeof ratio));
    text_append(buffer, size, "; --network flow simulates contention between exchanges, --placement random scattered ranks");
    return load;
}

/* --- gradients of tables --- */

void narrow_gradients_note(const size_t runs[N_PRECISIONS], struct diags *diags)
{
    static const struct {
        enum precision precision;
        const char *why;
    } narrow[] = {{PRECISION_BF16, "the default of sharded optimizers"}, {PRECISION_FP16, "the default of fp16 runs"}};
    for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++) {
        const char *precision = precision_name(narrow[k].precision);
        size_t n = runs[narrow[k].precision];
        if (n > 0)
            diag_note(diags, PLACE_NONE,
                      "%zu row%s reduce%s gradients in %s (%s); msim step uses fp32: --set job.gradient_precision=%s changes "
                      "that",
                      n, plural((int64_t)n), n == 1 ? "s" : "", precision, narrow[k].why, precision);
    }
}

/* --- power and energy --- */

static const double J_PER_MWH = 3.6e9;

char *megawatt_hours_text(double joules, char *buffer, size_t size)
{
    double mwh = joules / J_PER_MWH;

    return three_digits(mwh, buffer, size);
}

char *energy_text(double joules, char *buffer, size_t size)
{
    char number[32];

    if (joules < J_PER_MWH * 1e-5)
        snprintf(buffer, size, "%s J", three_digits(joules, number, sizeof number));
    else if (joules < J_PER_MWH)
        snprintf(buffer, size, "%s kWh", three_digits(joules / J_PER_MWH * 1e3, number, sizeof number));
    else
        snprintf(buffer, size, "%s MWh", megawatt_hours_text(joules, number, sizeof number));
    return buffer;
}

char *power_bound_text(const struct power_bound *bound, char *buffer, size_t size)
{
    bool nodes = bound->count == POWER_NODES;
    char watts[32];

    quantity_format(bound->each_w, DIM_POWER, watts, sizeof watts);
    snprintf(buffer, size, "%s (%s), without %s; PUE %.3g%s", nodes ? "nodes at full load" : "GPUs at board power", watts,
             nodes ? "switches and storage" : "hosts and network", bound->pue, bound->pue_assumed ? " assumed" : "");
    return buffer;
}

const char *power_count_name(enum power_count count)
{
    return count == POWER_NODES ? "nodes" : "boards";
}

const char *power_count_text(enum power_count count)
{
    return count == POWER_NODES ? "nodes at full load, without switches and storage; PUE of the cluster entry, or 1"
                                : "GPUs at board power, without hosts and network; PUE of the cluster entry, or 1";
}

bool power_bounds_alike(const struct power_bound *a, const struct power_bound *b)
{
    return a->count == b->count && double_compare(&a->each_w, &b->each_w) == 0 && double_compare(&a->pue, &b->pue) == 0 &&
           a->pue_assumed == b->pue_assumed;
}

struct energy {
    const struct power_bound *bound;
    double power_w, gpu_hours, tokens_per_s;
};

#define ENERGY_ROWS(ROW)                                                                                                         \
    ROW(energy, counted, as_text(power_count_name(s->bound->count)), "", JSON, "boards of GPUs, or nodes")                       \
    ROW(energy, each_w, as_real(s->bound->each_w), "W", JSON, "power of one of them, without PUE")                               \
    ROW(energy, pue, as_real(s->bound->pue), "", JSON, "power of the building over that of its machines")                        \
    ROW(energy, pue_assumed, as_flag(s->bound->pue_assumed), "", JSON, "whether the cluster has no PUE, so that 1 is assumed")   \
    ROW(energy, power_w, as_real(s->power_w), "W", JSON, "upper bound of the job's power")                                       \
    ROW(energy, energy_j, known_if(s->gpu_hours > 0, as_real(power_bound_energy(s->bound, s->gpu_hours))), "J", JSON,            \
        "upper bound of its energy")                                                                                             \
    ROW(energy, j_per_token, known_if(s->tokens_per_s > 0, as_real(s->power_w / s->tokens_per_s)), "J", JSON,                    \
        "upper bound of the energy per token")
RESULT_ROWS(energy_rows, ENERGY_ROWS)

json_t *energy_json(const struct power_bound *bound, double gpus, double gpu_hours, double tokens_per_s)
{
    const struct energy energy = {bound, bound->gpu_w * gpus, gpu_hours, tokens_per_s};
    return bound->count == POWER_UNKNOWN ? json_null() : rows_object(energy_rows, &energy);
}
