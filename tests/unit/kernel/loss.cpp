#include "support.hpp"

using namespace kernel_test;

TEST_CASE("NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss") {
  random_source rng;
  const char* const reductions[] = {"none", "sum", "mean"};
  for (const shape& dims : {shape{3, 5}, shape{2, 4, 6}, shape{1, 1}, shape{2, 3, 2, 2, 1},
                            shape{0, 3}, shape{2, 3, 0}})
    for (int form = 0; form < 24; ++form)
      for (dtype type : {dtype::f32, dtype::f64}) {
        const bool softmax = (form & 1) != 0, weighted = (form & 2) != 0, ignores = (form & 4) != 0;
        const int reduction = form / 8;
        shape rows = dims;
        rows.erase(rows.begin() + 1);
        const i64 C = dims[1], ignored = (form & 2) != 0 ? -1 : 0;
        if (count_of(rows) == 0 && reduction == 2) continue;
        const tensor x = rng.fill(type, dims, -3, 3), weight = rng.fill(type, {C}, 0.2, 1);
        const tensor labels =
            rng.fill((form & 4) != 0 ? dtype::i32 : dtype::i64, rows,
                     ignores ? static_cast<double>(ignored) : 0, static_cast<double>(C - 1));
        if (ignores && labels.count() > 0 && C > 1) labels.set(0, static_cast<double>(C - 1));
        if (ignores && C == 1) continue;
        tensor logs(type, dims), none(type, rows);
        double total = 0, sum = 0;
        for_each_index(rows, [&](const shape& at, i64 i) {
          shape p = at;
          p.insert(p.begin() + 1, 0);
          double norm = 0;
          for (p[1] = 0; p[1] < C; ++p[1]) norm += std::exp(x.value(offset_of(dims, p)));
          for (p[1] = 0; p[1] < C; ++p[1])
            logs.set(offset_of(dims, p), x.value(offset_of(dims, p)) - std::log(norm));
          const i64 label = static_cast<i64>(labels.value(i));
          double w = weighted && label >= 0 ? weight.value(label) : 1;
          if (ignores && label == ignored) w = 0;
          p[1] = label < 0 ? 0 : label;
          const double v = -(softmax ? logs : x).value(offset_of(dims, p)) * w;
          none.set(i, w == 0 ? 0 : v);
          total += w == 0 ? 0 : v;
          sum += w;
        });
        call c;
        c.name = softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss";
        c.attrs.set("reduction", reductions[reduction]);
        if (ignores) c.attrs.set("ignore_index", ignored);
        c.inputs = {x, labels};
        if (weighted) c.inputs.push_back(weight);
        tensor expected = none;
        if (reduction > 0) {
          expected = tensor(type, {});
          expected.set(0, reduction == 1 ? total : total / sum);
        }
        c.outputs = {tensor(type, expected.dims())};
        if (softmax && (form & 2) != 0) c.outputs.push_back(tensor(type, dims));
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 1e-5);
        if (c.outputs.size() > 1) check_close(c.outputs[1], logs, 1e-4, 1e-5);
        if (labels.count() == 0) continue;
        labels.set(0, static_cast<double>(C));
        CHECK(c.run() == sod2::errc::index_range);
      }
}
