#include "support.hpp"

using namespace kernel_test;

namespace {

struct activation {
  std::string name;
  double alpha, beta;
};
double activate(const activation& a, double x) {
  if (a.name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (a.name == "Tanh") return std::tanh(x);
  if (a.name == "Relu") return std::max(x, 0.0);
  if (a.name == "Affine") return a.alpha * x + a.beta;
  if (a.name == "LeakyRelu") return x < 0 ? a.alpha * x : x;
  if (a.name == "ThresholdedRelu") return x > a.alpha ? x : 0;
  if (a.name == "ScaledTanh") return a.alpha * std::tanh(a.beta * x);
  if (a.name == "HardSigmoid") return std::min(1.0, std::max(0.0, a.alpha * x + a.beta));
  if (a.name == "Elu") return x < 0 ? a.alpha * (std::exp(x) - 1) : x;
  if (a.name == "Softsign") return x / (1 + std::fabs(x));
  return std::log1p(std::exp(x));  // Softplus
}

struct layer {
  std::string kind = "LSTM";
  i64 steps = 3, batch = 2, inputs = 4, hidden = 5, directions = 1;
  bool reverse = false, layout = false, after = false, coupled = false;
  double clip = 0;
  std::vector<activation> functions;  // per direction
  tensor x, w, r, b, lens, h0, c0, p;
  i64 gates() const { return kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1; }
};
double of(const tensor& t, i64 i) { return t.present() ? t.value(i) : 0; }

/// One sequence at a time, reversed as a list within its own length; straight from the formulas.
void reference(const layer& l, tensor& y, tensor& yh, tensor& yc) {
  const i64 H = l.hidden, G = l.gates(), B = l.batch, D = l.directions, T = l.steps, I = l.inputs;
  for (i64 i = 0; i < y.count(); ++i) y.set(i, 0);
  for (i64 d = 0; d < D; ++d)
    for (i64 b = 0; b < B; ++b) {
      const auto state = [&](i64 j) {
        return l.layout ? (b * D + d) * H + j : (d * B + b) * H + j;
      };
      std::vector<double> h(idx(H)), c(idx(H));
      for (i64 j = 0; j < H; ++j) {
        h[idx(j)] = of(l.h0, l.h0.present() ? state(j) : 0);
        c[idx(j)] = of(l.c0, l.c0.present() ? state(j) : 0);
      }
      const i64 n = l.lens.present() ? static_cast<i64>(l.lens.value(b)) : T;
      const std::size_t nf = l.functions.size() / idx(D);
      const auto f = [&](std::size_t k, double v) {
        return activate(l.functions[idx(d) * nf + k], v);
      };
      const auto clip = [&](double v) {
        return l.clip > 0 ? std::min(l.clip, std::max(-l.clip, v)) : v;
      };
      for (i64 s = 0; s < n; ++s) {
        const bool back = d == 1 || l.reverse;
        const i64 t = back ? n - 1 - s : s;
        const auto wx = [&](i64 g, i64 j) {
          double sum = of(l.b, l.b.present() ? d * 2 * G * H + g * H + j : 0);
          for (i64 k = 0; k < I; ++k)
            sum += l.x.value((l.layout ? b * T + t : t * B + b) * I + k) *
                   l.w.value(((d * G + g) * H + j) * I + k);
          return sum;
        };
        const auto rb = [&](i64 g, i64 j) {
          return of(l.b, l.b.present() ? d * 2 * G * H + (G + g) * H + j : 0);
        };
        const auto rh = [&](i64 g, i64 j, const std::vector<double>& v) {
          double sum = 0;
          for (i64 k = 0; k < H; ++k) sum += v[idx(k)] * l.r.value(((d * G + g) * H + j) * H + k);
          return sum;
        };
        const auto peep = [&](i64 g, i64 j) {
          return of(l.p, l.p.present() ? (d * 3 + g) * H + j : 0);
        };
        std::vector<double> nh(idx(H)), nc(idx(H)), z(idx(H)), r(idx(H)), rhid(idx(H));
        for (i64 j = 0; j < H; ++j) {
          const std::size_t q = idx(j);
          if (l.kind == "RNN") nh[q] = f(0, clip(wx(0, j) + rh(0, j, h) + rb(0, j)));
          if (l.kind == "GRU") {
            z[q] = f(0, clip(wx(0, j) + rh(0, j, h) + rb(0, j)));
            r[q] = f(0, clip(wx(1, j) + rh(1, j, h) + rb(1, j)));
            rhid[q] = r[q] * h[q];
          }
          if (l.kind == "LSTM") {
            const double i = f(0, clip(wx(0, j) + rh(0, j, h) + rb(0, j) + peep(0, j) * c[q]));
            const double g =
                l.coupled ? 1 - i
                          : f(0, clip(wx(2, j) + rh(2, j, h) + rb(2, j) + peep(2, j) * c[q]));
            const double u = f(1, clip(wx(3, j) + rh(3, j, h) + rb(3, j)));
            nc[q] = g * c[q] + i * u;
            const double o = f(0, clip(wx(1, j) + rh(1, j, h) + rb(1, j) + peep(1, j) * nc[q]));
            nh[q] = o * f(2, nc[q]);
          }
        }
        if (l.kind == "GRU")
          for (i64 j = 0; j < H; ++j) {
            const std::size_t q = idx(j);
            const double part =
                l.after ? r[q] * (rh(2, j, h) + rb(2, j)) : rh(2, j, rhid) + rb(2, j);
            nh[q] = (1 - z[q]) * f(1, clip(wx(2, j) + part)) + z[q] * h[q];
          }
        h = nh;
        if (l.kind == "LSTM") c = nc;
        for (i64 j = 0; j < H; ++j)
          y.set((l.layout ? (b * T + t) * D + d : (t * D + d) * B + b) * H + j, h[idx(j)]);
      }
      for (i64 j = 0; j < H; ++j) {
        yh.set(state(j), h[idx(j)]);
        yc.set(state(j), c[idx(j)]);
      }
    }
}

const activation every_activation[] = {{"Relu", 0, 0},
                                       {"Affine", 0.5, 0.1},
                                       {"LeakyRelu", 0.2, 0},
                                       {"Elu", 0.7, 0},
                                       {"ThresholdedRelu", 0.3, 0},
                                       {"ScaledTanh", 0.8, 1.1},
                                       {"HardSigmoid", 0.3, 0.4},
                                       {"Softsign", 0, 0},
                                       {"Softplus", 0, 0},
                                       {"Sigmoid", 0, 0},
                                       {"Tanh", 0, 0}};
bool takes_beta(const std::string& n) {
  return n == "Affine" || n == "ScaledTanh" || n == "HardSigmoid";
}
bool takes_alpha(const std::string& n) {
  return takes_beta(n) || n == "LeakyRelu" || n == "Elu" || n == "ThresholdedRelu";
}

}  // namespace

TEST_CASE("LSTM, GRU, RNN against the formulas") {
  random_source rng;
  const auto all = targets();
  for (int round = 0; round < 240; ++round) {
    layer l;
    l.kind = round % 3 == 0 ? "LSTM" : round % 3 == 1 ? "GRU" : "RNN";
    const auto coin = [&] { return rng.integer(0, 1) == 1; };
    l.steps = round % 20 == 19 ? 0 : rng.integer(1, round % 8 == 0 ? 230 : 7);
    l.batch = round % 20 == 18 ? 0 : rng.integer(1, 5);
    l.inputs = rng.extent(17);
    l.hidden = rng.extent(round % 8 == 0 ? 3 : 33);
    const i64 way = rng.integer(0, 2);
    l.directions = way == 2 ? 2 : 1;
    l.reverse = way == 1;
    l.layout = coin();
    l.after = coin();
    l.coupled = rng.integer(0, 3) == 0;
    l.clip = coin() ? 0 : 0.6;
    const dtype type = round % 5 == 4 ? dtype::f64 : dtype::f32;
    const i64 D = l.directions, G = l.gates(), H = l.hidden;
    l.x = rng.fill(
        type, l.layout ? shape{l.batch, l.steps, l.inputs} : shape{l.steps, l.batch, l.inputs});
    l.w = rng.fill(type, {D, G * H, l.inputs}, -0.5, 0.5);
    l.r = rng.fill(type, {D, G * H, H}, -0.3, 0.3);
    const shape state = l.layout ? shape{l.batch, D, H} : shape{D, l.batch, H};
    if (coin()) l.b = rng.fill(type, {D, 2 * G * H});
    if (coin()) l.lens = rng.fill(dtype::i32, {l.batch}, 0, static_cast<double>(l.steps));
    if (coin()) l.h0 = rng.fill(type, state);
    if (l.kind == "LSTM" && coin()) l.c0 = rng.fill(type, state);
    if (l.kind == "LSTM" && coin()) l.p = rng.fill(type, {D, 3 * H});
    call c;
    c.table = all[idx(round) % all.size()];
    c.name = l.kind;
    c.version = 14;
    const std::size_t nf = l.kind == "LSTM" ? 3 : l.kind == "GRU" ? 2 : 1;
    const bool given = coin();
    std::vector<std::string> names;
    std::vector<float> alpha, beta;
    for (std::size_t i = 0; i < nf * idx(D); ++i) {
      activation a = i % nf == 0 && l.kind != "RNN" ? every_activation[9] : every_activation[10];
      if (given) a = every_activation[rng.integer(0, 10)];
      l.functions.push_back(a);
      names.push_back(a.name);
      if (takes_alpha(a.name)) alpha.push_back(static_cast<float>(a.alpha));
      if (takes_beta(a.name)) beta.push_back(static_cast<float>(a.beta));
    }
    if (given) c.attrs.set("activations", names);
    if (given && !alpha.empty()) c.attrs.set("activation_alpha", alpha);
    if (given && !beta.empty()) c.attrs.set("activation_beta", beta);
    c.attrs.set("direction", way == 2 ? "bidirectional" : way == 1 ? "reverse" : "forward");
    c.attrs.set("hidden_size", H).set("layout", l.layout ? 1 : 0);
    c.attrs.set("linear_before_reset", l.after ? 1 : 0).set("input_forget", l.coupled ? 1 : 0);
    if (l.clip > 0) c.attrs.set("clip", l.clip);
    c.inputs = {l.x, l.w, l.r, l.b, l.lens, l.h0};
    if (l.kind == "LSTM") {
      c.inputs.push_back(l.c0);
      c.inputs.push_back(l.p);
    }
    const bool constant = coin();
    c.constant = {false, constant, constant && coin()};
    c.threads = coin() ? 1 : 3;
    const tensor y(type, l.layout ? shape{l.batch, l.steps, D, H} : shape{l.steps, D, l.batch, H});
    const tensor yh(type, state), yc(type, state);
    const i64 present = rng.integer(1, 7);
    c.outputs = {(present & 1) != 0 ? y : tensor(), (present & 2) != 0 ? yh : tensor()};
    if (l.kind == "LSTM") c.outputs.push_back((present & 4) != 0 ? yc : tensor());
    tensor ey = y.clone(), eh = yh.clone(), ec = yc.clone();
    reference(l, ey, eh, ec);
    INFO(l.kind, " round ", round);
    REQUIRE(c.run() == sod2::errc::ok);
    // Unbounded activations blow up: a relative tolerance, wide for float32.
    const double tolerance = type == dtype::f64 ? 1e-6 : 2e-3;
    if (given && l.steps > 10) continue;
    if ((present & 1) != 0) check_close(y, ey, tolerance, tolerance);
    if ((present & 2) != 0) check_close(yh, eh, tolerance, tolerance);
    if (l.kind == "LSTM" && (present & 4) != 0) check_close(yc, ec, tolerance, tolerance);
  }
}

TEST_CASE("recurrent layers refuse what they cannot be") {
  call c;
  c.name = "LSTM";
  c.inputs = {tensor(dtype::f32, {1, 1, 2}), tensor(dtype::f32, {1, 8, 2}),
              tensor(dtype::f32, {1, 8, 2})};
  c.outputs = {tensor(dtype::f32, {1, 1, 1, 2})};
  c.attrs.set("activations", std::vector<std::string>{"Sigmoid", "Tanh", "Cosine"});
  CHECK(c.run() == sod2::errc::bad_attribute);
  c.attrs.set("activations", std::vector<std::string>{"Sigmoid", "Tanh"});
  CHECK(c.run() == sod2::errc::bad_attribute);
  c.attrs.set("activations", std::vector<std::string>{"sigmoid", "TANH", "tanh"});
  c.attrs.set("direction", "sideways");
  CHECK(c.run() == sod2::errc::bad_attribute);
  c.attrs.set("direction", "forward");
  c.inputs[1] = tensor(dtype::f32, {1, 8, 3});
  CHECK(c.run() == sod2::errc::inner_dims);
}
