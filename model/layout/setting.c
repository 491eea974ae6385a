/* setting.c - the setting of an experiment. */
#include "model/layout/layout.h"
#include "model/spec/experiment.h"

struct setting experiment_setting(const struct experiment *experiment)
{
    return (struct setting){
        .model = &experiment->model,
        .cluster = &experiment->cluster,
        .job = &experiment->job,
        .gpus = experiment->gpus,
    };
}
