#include "model/cost/work/cost.h"

const char *work_class_name(enum work_class c)
{
    static const char *const names[] = {
#define X(id, name, what) [CLASS_##id] = name,
        WORK_CLASSES(X)
#undef X
    };
    return names[c];
}
