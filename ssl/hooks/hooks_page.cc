// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/hooks_page.h"

#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/config/help.h"
#include "ssl/config/markdown.h"
#include "ssl/core/component.h"
#include "ssl/hooks/hook_aliases.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kHeader[] = R"(# Hooks

Made by `./bazelw run //ssl/tools:print_hooks_page > docs/hooks.md`; do not edit. How to write one:
[ssl/hooks/README.md](../ssl/hooks/README.md); a host's own: [examples/embed](../examples/embed/embed.cc).

## Events
The first column is the order within a step. Within an event, hooks run by stage (timing, guard, mutate, observe, report, persist),
then by rank, then by name; `hooks:` in the log of a run tells. With gradient accumulation (`OPTIMIZER.grad_acc_steps`),
`OnBatchStart`, `OnForward` and `OnLossAndMeter` come with every batch, `OnBackward`, `OnUpdate` and `OnStep` once per update.

| here | when | VISSL | United Perception | LiBai |
|---|---|---|---|---|
| `OnStart` | once, before the first phase, after a resume too | `on_start` | `before_train` | `before_train` |
| `OnPhaseStart` | before the first step of a train or test phase | `on_phase_start` | – | – |
| `OnBatchStart` | a batch is there, before its forward pass | – | `before_forward`, `before_eval_forward` | `before_step` |
| `OnForward` | after the forward pass | `on_forward` | `after_forward`, `after_eval_forward` | – |
| `OnLossAndMeter` | after loss and meters | `on_loss_and_meter` | – | – |
| `OnBackward` | gradients are complete, reduced over ranks and unscaled | `on_backward` | `after_backward`, `after_allreduce` | – |
| `OnUpdate` | after the optimizer's update | `on_update` | `after_update` | – |
| `OnStep` | counters are advanced | `on_step` | – | `after_step` |
| `OnPhaseEnd` | meters are read; train and test phases | `on_phase_end` | `after_epoch`, `after_eval` | – |
| `OnException` | an error or an exception ends the run | `on_exception` | – | – |
| `OnEnd` | once, after an error too; all hooks, whatever the others return | `on_end` | `after_train` | `after_train` |

Without a counterpart: United Perception's `before_data` and `before_allreduce`; reading and reducing belong to the loop, and
`perf_stats` tells their times. LiBai's `before_step` comes before the batch is fetched, `OnBatchStart` after. Here test phases
have all events but `OnBackward` and `OnUpdate`, where United Perception has events of their own.

What hooks ask to be saved in `OnStart`, `OnPhaseStart`, `OnStep` or `OnPhaseEnd` is saved once all handlers of that event have run; within
a step nothing can be saved.

## In a configuration
A hook has keys in a section that turn it on (below), and may stand in the list `config.hooks`, as in United Perception:

```yaml
config:
  hooks:
    - {type: grad_clipper, kwargs: {mode: moving_average, momentum: 0.9, tolerance: 5}}
    - {type: grad_clipper, name: second_clipper, kwargs: {mode: pre_defined, max_norm: 10}}
    - {type: train_val_logger, kwargs: {freq: 50}}
```

- An entry turns its hook on. Without `name` it is the hook that the section configures: what `kwargs` do not set, in nested maps as
  well, has the section's value. With a `name` it is one more hook of that type, and what `kwargs` do not set has its default; hooks of
  which a run has one (below) take no name and have one entry, and the name of another hook is refused. Named clippers report as
  `Training/<name>/grad_norm`.
- `name`, of at most 100 letters, digits, `_` and `-`, is the scope of the hook's state in checkpoints (`hooks/<name>/...`). State of
  hooks that a run no longer has, and missing state of new ones, is named in the log and does not keep a run from going on. The list
  itself is compared whole: a run that goes on with another one needs `CHECKPOINT.ALLOW_CHANGES=[hooks]`; keys in sections may change as [checkpoints.md](checkpoints.md) says.
- Lists are not joined: of two files that have one, the last one's counts. A warning names both where they are fragments of one group,
  `+config/hooks=a +config/hooks=b`. Fragments that turn hooks on in sections add up.
- `type` may be another program's name (last table), with that program's keys where the table lists them. What neither `kwargs` nor
  the section set has that program's default, where ours differs. The resolved configuration (`train_config.yaml`) has what an entry
  comes to: our names, with those defaults among `kwargs`. A key that we do not have is an error with its place and the nearest name,
  also where the other program ignores it. A name that the program at hand has registered for a hook or sink of its own is that one.
  The list stands under `config`.
- `type` may be a metric sink, too: it is turned on as by its section. A sink takes no name.

## Metrics
Producers give numbers to the run's metric store by name ([ssl/core/metrics.h](../ssl/core/metrics.h)); `train_logger` makes a report
of them every `LOG_FREQUENCY` iterations, at the first two of a process and at the last, and each evaluation (`phase_metrics`) is a
report of its own. Every sink gets every report.

- A name's observations since the last report become one value over all ranks: their mean, or their sum, largest or smallest, or of
  the medians of each rank's last iterations, as declared before its first use. What is only set (learning rate, progress) is the
  last value of rank 0. `Training/Loss` is a mean; `Speed/step_seconds` and `Speed/data_seconds` are medians of 20 iterations of the
  slowest rank.
- `Speed/samples_per_sec` is what a stopwatch says between two reports, without test phases, evaluations and saves: a report waits until
  the device has done all steps, and then looks at the clock. `Speed/ETA_seconds` and the engine `estimate` go by the same clock.
- `Speed/data_wait_share` ("data" in the progress line) is the share of that time in which the loader had no batch ready: near 0, more
  workers or a faster disk change nothing. `Speed/device_wait_share` ("device", not on the CPU) is the share in which the host waited
  for the device, to free a buffer for a batch or to end its work for a report: near 1, the device is what limits the speed.
- `iteration` of a report counts the updates done. LiBai and detectron2 count from 0: their line 19 is our line 20, and their last
  evaluation, at `max_iter`, is at the last iteration here. A line has all values of its window, where theirs are split by iteration.
- NaN and infinity are `null` in JSON lines, which stay valid JSON; TensorBoard shows them as such. Histograms and images are in
  TensorBoard's files only.
- `train_val_logger`: `freq` counts, `skip_first_k` is the number of iterations that timing leaves out, `logdir` lies inside the run's
  directory, `summary_writer: pavi` is refused. Two writers of one folder, such as `logdir: tb_logs` beside the sink
  `tensorboard`, are one. `CommonMetricPrinter` prints LiBai's line beside ours; its losses are medians of 200,
  its time left is that of the median of the last 1000 iterations.

### Metrics that are looked at
`best_checkpoint` (`METRICS`) and `early_stop` (`METRIC`) take the names of what phases and evaluations measure; those of the reports between,
such as `Training/Loss`, are refused.

| name | what it is | needs |
|---|---|---|
| `Training/loss_mean` | mean loss of a train phase | – |
| `Testing/loss_mean` | mean loss of a test phase | `TEST_MODEL` |
| `Testing/<meter>_<metric>_Output_<output>`, such as `Testing/accuracy_list_meter_top_1_Output_0` | what a meter says of a test phase | `TEST_MODEL`, `METERS.names` |
| `Training/<meter>_<metric>_Output_<output>` | what a meter says of a train phase | `METERS.names`, `METERS.enable_training_meter` |
| `Testing/<meter>_ema_<metric>_Output_<output>`, `Training/...` | the same of the averaged model | `HOOKS.EMA_MODEL.ENABLE_EMA_METERS` |
| `Evaluation/knn_top_1`, `Evaluation/knn_top_5` | nearest neighbours, by the hook `eval` | `HOOKS.EVAL.ONLINE_EVALUATION`, `KNN` |
| `Evaluation/linear_top_1`, `Evaluation/linear_top_5` | a linear classifier, by the hook `eval` | `HOOKS.EVAL.ONLINE_EVALUATION`, `LINEAR` |
| `Evaluation/loss_mean` | the method's loss, by the hook `eval` | `HOOKS.EVAL.ONLINE_EVALUATION`, `LOSS` |
| `Evaluation/<name>_knn_top_1`, ... | the same, by an entry `eval` of that name | the entry |
| `Host/...` | what a program's own hooks report | the program |

## Departures from United Perception
- `reload`: an entry is `DATA.TRAIN.MINI_EPOCH_GROUPS` (`group`) and `DATA.TRAIN.MINI_EPOCHS`, which that program has among its data
  set's keys (`mini_epoch`) and which the entry may have as well. An epoch here is one of the parts, so that tests and checkpoints come
  after each. Loaders stay; the sampler deals anew.
- `auto_save_best_multitask`: a task is a metric by its whole name, such as `Testing/accuracy_list_meter_top_1_Output_0`; without `tasks`
  it is `Testing/loss_mean`, as of `auto_save_best`. With several, each has a checkpoint `best.<metric>`; with one, it is `best`.
- `visualize`: a sheet of crops every `freq` updates (`crop_images`) in place of boxes over each image; what it is told of boxes is warned
  of. Test batches are not drawn.
- `gradient_collector`: norms of gradients become metrics, where that program hands the gradients to a loss (`collect_func_module`). Without
  `grad_type` they are those of parameters. A module is one that has parameters of its own: a container, such as `trunk.layer4`, is all
  modules in it; a module that backward has not come to has 0, and one whose input has no gradient, images or what a frozen trunk gives, is
  left out. Those of modules are of each rank's own batches, before they are reduced or clipped, and a report has the mean of the ranks'
  norms; they are refused beside activation checkpointing (`USE_ACTIVATION_CHECKPOINTING`, `memory_checkpoint`), where all modules of a part
  that runs again share one gradient. Those of a host's own model or policy that does so are left out, with a warning.
- `check_replicas` (ours) compares every `freq` updates and at the end of each train phase; what is saved between, within a phase, is not
  looked at.
- `memory_analysis`: what `system_stats` measures joins the run's next report, which every sink gets, the one of its `logdir` as well; where
  `train_val_logger` has the same `logdir`, as by default, they share it.
- Learning rate, momentum and weight decay follow the optimizer's schedules (`OPTIMIZER.param_schedulers`); no hook sets them.
  `schedule_monitor`, which other programs' scheduler hooks are here, records what they have set.
- `yolox_noaug` is refused: mosaic and mixup are transforms of detection, and none here mixes images.
- The blocks `trainer` and `saver` stand under `config`: [checkpoints.md](checkpoints.md#when-it-is-saved).
)";

// Its keys with their places; those of the list by their names alone.
std::vector<HelpRow> RowsOf(ComponentOptions& options) {
  std::vector<HelpRow> rows = HelpRows(options.section() == kHookList ? "" : options.section(), options);
  for (const SharedOptions& shared : options.shared()) {
    for (HelpRow& row : HelpRows(shared.section, *shared.options)) rows.push_back(std::move(row));
  }
  return rows;
}

std::string NamesElsewhere(const std::string& hook) {
  std::vector<std::string> names;
  for (const HookAlias& alias : HookAliases()) {
    if (alias.hook == hook) names.push_back(absl::StrCat(alias.program, ": ", MarkdownCode(alias.name)));
  }
  return names.empty() ? "" : absl::StrCat(" ", absl::StrJoin(names, ", "), ".");
}

std::string Entry(const Component& component) {
  const std::unique_ptr<ComponentOptions> options = component.make_options();
  const char* how = options->section() == kHookList ? " In the list `hooks` only."
                    : options->enabled()            ? " On by default."
                                                    : "";
  const std::vector<HelpRow> rows = RowsOf(*options);
  const char* once = IsOncePerRun(*options) ? " One per run." : "";
  return absl::StrCat("\n### ", component.name, "\n", component.summary, ".", how, once, NamesElsewhere(component.name),
                      "\n", rows.empty() ? "" : MarkdownTable("key", rows));
}

std::string Entries(const char* title, const std::map<std::string, Component>& components) {
  std::string text = absl::StrCat("\n## ", title, "\n");
  for (const auto& [name, component] : components) absl::StrAppend(&text, Entry(component));
  return text;
}

std::string AliasTable() {
  std::string table =
      "\n## Names elsewhere\n| program | there | here | keys | defaults there |\n|---|---|---|---|---|\n";
  for (const HookAlias& alias : HookAliases()) {
    std::vector<std::string> keys;
    for (const auto& [theirs, ours] : alias.keys) {
      keys.push_back(absl::StrCat(MarkdownCode(theirs), " is ", MarkdownCode(ours)));
    }
    std::vector<std::string> defaults;
    for (const auto& [ours, value] : alias.defaults) defaults.push_back(MarkdownCode(absl::StrCat(ours, ": ", value)));
    absl::StrAppend(&table, "| ", alias.program, " | ", MarkdownCode(alias.name), " | ", MarkdownCode(alias.hook),
                    " | ", absl::StrJoin(keys, ", "), " | ", absl::StrJoin(defaults, ", "), " |\n");
  }
  return table;
}

std::string KeysElsewhereTable() {
  std::string table =
      "\n## Keys elsewhere that are none here\n| program | hook there | key | here |\n|---|---|---|---|\n";
  for (const HookAlias& alias : HookAliases()) {
    for (const auto& [key, instead] : alias.without) {
      absl::StrAppend(&table, "| ", alias.program, " | ", MarkdownCode(alias.name), " | ", MarkdownCode(key), " | ",
                      instead, " |\n");
    }
  }
  return table;
}

std::string IdleKeysTable() {
  std::string table =
      "\n## Keys elsewhere that have no effect here\n| program | hook there | key | here |\n|---|---|---|---|\n";
  for (const HookAlias& alias : HookAliases()) {
    for (const auto& [key, why] : alias.idle) {
      absl::StrAppend(&table, "| ", alias.program, " | ", MarkdownCode(alias.name), " | ", MarkdownCode(key), " | ",
                      why, " |\n");
    }
  }
  return table;
}

std::string ElsewhereTable() {
  std::string table = "\n## Hooks elsewhere that are none here\n| program | there | here |\n|---|---|---|\n";
  for (const HookElsewhere& other : HooksElsewhere()) {
    absl::StrAppend(&table, "| ", other.program, " | ", MarkdownCode(other.name), " | ", other.instead, " |\n");
  }
  return table;
}

}  // namespace

std::string HooksPage(const Registries& registries) {
  return absl::StrCat(kHeader, Entries("Hooks", registries.hook_components),
                      Entries("Metric sinks, in runs that keep files", registries.sink_components), AliasTable(),
                      KeysElsewhereTable(), IdleKeysTable(), ElsewhereTable());
}

}  // namespace ssl
