#include "shapes.h"
#include "tests/suite.h"

int main(void)
{
    SRunner *runner = srunner_create(suite_kernels());
    srunner_add_suite(runner, suite_collective());
    srunner_add_suite(runner, suite_oversubscription());
    srunner_add_suite(runner, suite_work());
    srunner_add_suite(runner, suite_footprint());
    srunner_add_suite(runner, suite_recompute());
    srunner_add_suite(runner, suite_closed_form());
    srunner_add_suite(runner, suite_pair());
    srunner_add_suite(runner, suite_host_memory());
    srunner_add_suite(runner, suite_energy());
    srunner_add_suite(runner, suite_context());
    srunner_add_suite(runner, suite_muon());
    srunner_add_suite(runner, suite_mixer());
    srunner_add_suite(runner, suite_heads());
    srunner_add_suite(runner, suite_adapter());
    srunner_add_suite(runner, suite_experts());
    srunner_add_suite(runner, suite_documents());
    srunner_add_suite(runner, suite_kept());
    return suites_run(runner);
}
