// The loss of a narrow network and its gradient, for CPUs. See narrow.py for what is computed.
//
// A network of few units is too small for matrix libraries: its innermost axis has four elements.
// Here the innermost axis are samples, as many as a register holds (`V`), so that every operation is
// one vector instruction. Samples come sorted by length; those of one register run for as many steps
// as their longest needs, forwards and backwards, in the cache.
//
// In the names below, i is the receiver, j the sender; f a hidden unit, c a channel. `dx` is the
// gradient of the loss with respect to x. Time t runs over steps: step t reads the state t and
// makes the state t + 1.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

#ifdef __AVX512F__
constexpr int kBytes = 64;
#else
constexpr int kBytes = 32;
#endif
typedef float F __attribute__((vector_size(kBytes)));
typedef int32_t I __attribute__((vector_size(kBytes)));
typedef double D __attribute__((vector_size(kBytes)));

template <typename T> struct Register;
template <> struct Register<float> { using V = F; };
template <> struct Register<double> { using V = D; };
template <typename T> constexpr int kLanes = kBytes / sizeof(T);

// e^x by 2^k e^r with |r| <= ln 2 / 2 and the series of e^r.
inline F Exp(F x) {
  x = x > -87.f ? x : F{} - 87.f;
  x = x < 88.f ? x : F{} + 88.f;
  const F scaled = x * 1.44269504f;
  const I k = __builtin_convertvector(scaled + (scaled < 0.f ? F{} - .5f : F{} + .5f), I);
  const F whole = __builtin_convertvector(k, F);
  const F r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  F sum = F{} + 1.f / 5040;
  for (const float term : {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, .5f, 1.f, 1.f})
    sum = sum * r + term;
  const I bits = (k + 127) << 23;
  F power;
  std::memcpy(&power, &bits, sizeof power);
  return sum * power;
}

// ln x by k ln 2 + 2 artanh((m - 1) / (m + 1)) with m in [1/sqrt 2, sqrt 2]; x is at least 1.
inline F Log(F x) {
  I bits;
  std::memcpy(&bits, &x, sizeof bits);
  F k = __builtin_convertvector((bits >> 23) - 127, F);
  bits = (bits & 0x7fffff) | 0x3f800000;
  F m;
  std::memcpy(&m, &bits, sizeof m);
  k = m > 1.41421356f ? k + 1.f : k;
  m = m > 1.41421356f ? m * .5f : m;
  const F s = (m - 1.f) / (m + 1.f), q = s * s;
  const F series = 1.f + q * (1.f / 3 + q * (1.f / 5 + q * (1.f / 7 + q * (1.f / 9))));
  return k * 0.693147181f + 2.f * s * series;
}

inline D Exp(D x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::exp(x[lane]);
  return x;
}
inline D Log(D x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::log(x[lane]);
  return x;
}
inline F Sqrt(F x) {
  for (int lane = 0; lane < kLanes<float>; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
}
inline D Sqrt(D x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
}

enum Kind { kScalar = 0, kMask = 1, kPointer = 2 };

// What the network is: given once, as attributes.
struct Shape {
  int nodes, times, batch;
  int node_inputs, edge_inputs;
  int adjacency;           // which edge input is the mask
  bool everyone;           // whether all pairs may attend to each other, whatever the mask
  std::vector<int> hints;  // a Kind each, in the task's order; at most one is a pointer
  bool feeds_hints, edge_info, bias, norm, simplified;
  double slope, sharpness;

  int Count(bool pointers) const {
    return std::count_if(hints.begin(), hints.end(),
                         [&](int kind) { return (kind == kPointer) == pointers; });
  }
};

// Where a decoder's parameters are.
struct Decoder {
  int kind;
  int column;  // first of what the readers see for it
  int place;   // which of the node hints it predicts
  int edge, target, score, score_bias;
};
struct Decoders {
  int readers, bias, width;
  std::vector<Decoder> each;
};

// Where each parameter is in the flat vector; the order is narrow.py's.
template <int H> struct Places {
  int node_channels, edge_channels;
  int projections, projections_bias, edge, everywhere, omega, info, info_bias, bias, scale, offset;
  Decoders hints, outputs;
  int size = 0;

  explicit Places(const Shape& s) {
    node_channels = s.node_inputs + (s.feeds_hints ? s.Count(false) : 0);
    edge_channels = s.edge_inputs + (s.feeds_hints ? s.Count(true) : 0);
    projections = Take((node_channels + H) * 4 * H);
    projections_bias = Take(4 * H);
    edge = Take(edge_channels * H);
    everywhere = Take(H);
    omega = Take(H);
    if (s.edge_info) info = Take(edge_channels * H), info_bias = Take(H);
    if (s.bias) bias = Take(s.nodes * s.nodes);
    if (s.norm) scale = Take(H), offset = Take(H);
    hints = TakeDecoders(s, s.hints);
    outputs = TakeDecoders(s, {kPointer});
  }

  int Take(int count) { return (size += count) - count; }

  Decoders TakeDecoders(const Shape& s, const std::vector<int>& kinds) {
    Decoders found{};
    int place = 0;
    for (const int kind : kinds) {
      found.each.push_back({kind, found.width, kind == kPointer ? 0 : place++, 0, 0, 0, 0});
      found.width += kind == kPointer && !s.simplified ? 2 * H : 1;
    }
    found.readers = Take((node_channels + 2 * H) * found.width);
    found.bias = Take(found.width);
    for (Decoder& d : found.each) {
      if (d.kind != kPointer || s.simplified) continue;
      d.edge = Take(edge_channels * H);
      d.target = Take(H);
      d.score = Take(H);
      d.score_bias = Take(1);
    }
    return found;
  }
};

// As many samples of one seed as a register holds: forwards, then backwards.
//
// Everything about nodes is kept as rows, one per channel or unit, a row having one V per node.
template <typename T, int H> struct Pass {
  using V = typename Register<T>::V;
  using Rows = std::vector<const V*>;
  static constexpr T kZero = 0;

  const Shape& s;
  const Places<H>& at;
  const int n, nn, N, E, K;  // nodes, pairs; channels of nodes and of edges; node hints
  const bool points;         // whether there is a pointer hint
  const T* w = nullptr;      // parameters
  std::vector<V> dw;         // their gradient, per lane
  V loss{};

  // Known before the first step.
  std::vector<V> edges, neighbours, true_hints, true_pointers, true_output;
  V lengths{}, hint_weight{}, output_weight{};
  int steps = 0;

  // One block per time.
  std::vector<V> x, h, pointers, projected, alpha, z, seen;
  // What the output decoder reads: each lane's own last step.
  std::vector<V> last_x, last_before, last_after, last_pointers, output_seen, output_soft;
  // Gradients, of the state that is being left and of the one that is being entered.
  std::vector<V> dx, dx_next, dh, dh_next, dpointers, dpointers_next, dlast_x, dlast_before,
      dlast_after, dlast_pointers, dseen, dprojected;
  std::vector<V> scores, dscores;  // of all pairs

  Pass(const Shape& shape, const Places<H>& places)
      : s(shape), at(places), n(shape.nodes), nn(n * n), N(places.node_channels),
        E(places.edge_channels), K(shape.Count(false)), points(shape.Count(true)) {
    const int times = s.times + 1;
    dw.resize(at.size);
    edges.resize(s.edge_inputs * nn);
    true_hints.resize(times * K * n);
    true_pointers.resize(times * n);
    true_output.resize(n);
    x.resize(times * N * n);
    h.resize(times * H * n);
    projected.resize(times * 4 * H * n);
    z.resize(times * H * n);
    seen.resize(times * at.hints.width * n);
    output_seen.resize(at.outputs.width * n);
    dseen.resize(std::max(at.hints.width, at.outputs.width) * n);
    dprojected.resize(4 * H * n);
    for (auto* v : {&pointers, &alpha}) v->resize(times * nn);
    for (auto* v : {&last_x, &dlast_x, &dx, &dx_next}) v->resize(N * n);
    for (auto* v : {&last_before, &last_after, &dlast_before, &dlast_after, &dh, &dh_next})
      v->resize(H * n);
    for (auto* v : {&neighbours, &output_soft, &last_pointers, &dlast_pointers, &dpointers,
                    &dpointers_next, &scores, &dscores})
      v->resize(nn);
  }

  V* X(int t) { return &x[t * N * n]; }
  V* Hidden(int t) { return &h[t * H * n]; }
  V* Pointers(int t) { return &pointers[t * nn]; }

  static V Max(V a, V b) { return a > b ? a : b; }
  static V Sigmoid(V a) { return T(1) / (T(1) + Exp(-a)); }
  static void Clear(std::initializer_list<std::vector<V>*> all) {
    for (auto* v : all) std::fill(v->begin(), v->end(), V{});
  }

  // ---- reading the batch

  struct Inputs {
    const T *nodes, *edges, *hints, *pointers, *output, *lengths;
  };

  void Load(const Inputs& in, int first, T hint_share, T output_share) {
    T longest = 2;
    for (int lane = 0; lane < kLanes<T>; ++lane)
      longest = std::max(longest, in.lengths[std::min(first + lane, s.batch - 1)]);
    steps = std::max(1, std::min(s.times, static_cast<int>(longest)) - 1);
    const int known = std::min(steps + 1, s.times);
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      const bool live = first + lane < s.batch;
      const int64_t b = std::min(first + lane, s.batch - 1);
      lengths[lane] = in.lengths[b];
      hint_weight[lane] = live ? hint_share : 0;
      output_weight[lane] = live ? output_share : 0;
      for (int i = 0; i < n; ++i) {
        true_output[i][lane] = in.output[b * n + i];
        for (int c = 0; c < s.node_inputs; ++c)
          X(0)[c * n + i][lane] = in.nodes[(b * n + i) * s.node_inputs + c];
      }
      for (int ij = 0; ij < nn; ++ij)
        for (int c = 0; c < s.edge_inputs; ++c)
          edges[c * nn + ij][lane] = in.edges[(b * nn + ij) * s.edge_inputs + c];
      for (int t = 0; t < known; ++t)
        for (int i = 0; i < n; ++i) {
          const int64_t node = (t * s.batch + b) * n + i;
          for (int k = 0; k < K; ++k) true_hints[(t * K + k) * n + i][lane] = in.hints[node * K + k];
          if (points) true_pointers[t * n + i][lane] = in.pointers[node];
        }
    }
    const V* adjacent = &edges[s.adjacency * nn];
    const V one = V{} + T(1);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        const V either = adjacent[i * n + j] + adjacent[j * n + i];
        neighbours[i * n + j] = s.everyone || i == j ? one : (either > kZero ? one : V{});
      }
    for (int t = 1; t <= steps; ++t) std::copy(X(0), X(0) + s.node_inputs * n, X(t));
    if (s.feeds_hints) {  // the first hints are the true ones
      std::copy(&true_hints[0], &true_hints[K * n], X(0) + s.node_inputs * n);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
          Pointers(0)[i * n + j] = true_pointers[i] == T(j) ? one : V{};
    }
    std::fill(Hidden(0), Hidden(1), V{});
  }

  // ---- affine maps of rows:  out_o = b_o + sum_k W_ko in_k

  Rows RowsOf(std::initializer_list<std::pair<const V*, int>> blocks) const {
    Rows rows;
    for (const auto& [block, count] : blocks)
      for (int k = 0; k < count; ++k) rows.push_back(block + k * n);
    return rows;
  }

  void Affine(const Rows& in, int weight, int bias, int width, V* out) const {
    const int count = in.size();
    for (int o = 0; o < width; ++o)
      for (int i = 0; i < n; ++i) {
        V sum = V{} + w[bias + o];
        for (int k = 0; k < count; ++k) sum += in[k][i] * w[weight + k * width + o];
        out[o * n + i] = sum;
      }
  }

  // `din` are the same rows' gradients.
  void AffineBackward(const Rows& in, const Rows& din, int weight, int bias, int width,
                      const V* dout) {
    for (int o = 0; o < width; ++o) {
      V total{};
      for (int i = 0; i < n; ++i) total += dout[o * n + i];
      dw[bias + o] += total;
    }
    for (size_t k = 0; k < in.size(); ++k) {
      V* d = const_cast<V*>(din[k]);
      for (int o = 0; o < width; ++o) {
        const int place = weight + k * width + o;
        const V* out = dout + o * n;
        V total{};
        for (int i = 0; i < n; ++i) {
          total += out[i] * in[k][i];
          d[i] += out[i] * w[place];
        }
        dw[place] += total;
      }
    }
  }

  // ---- the pairwise score (see network/pairwise.py), one row of pairs at a time
  //
  // Attention:        a row belongs to receiver i, q runs over senders,
  //                   score_q = sum_f omega_f leaky_relu(mine_f + theirs_fq + e_q W_f (+ B_q)).
  // Pointer decoder:  a row belongs to target j, q runs over those that point,
  //                   score_q = sum_f omega_f max(theirs_fq, mine_f + e_q W_f).

  struct Pairs {
    const V *mine, *theirs;  // rows of units
    int edge, omega, bias;   // parameters; bias is -1 if there is none
  };

  template <int C, bool leaky> void ScoreRow(const Pairs& p, int r, const V* const* e, V* out) {
    for (int f = 0; f < H; ++f) {
      const V own = p.mine[f * n + r] + (leaky ? V{} : V{} + w[p.bias + f]);
      const V* theirs = p.theirs + f * n;
      const T omega = w[p.omega + f];
      T weight[C];
      for (int c = 0; c < C; ++c) weight[c] = w[p.edge + c * H + f];
      for (int q = 0; q < n; ++q) {
        V zeta = own;
        for (int c = 0; c < C; ++c) zeta += e[c][q] * weight[c];
        if (leaky) {
          zeta += theirs[q];
          if (p.bias >= 0) zeta += w[p.bias + r * n + q];
          zeta = Max(zeta, T(s.slope) * zeta);
        } else {
          zeta = Max(theirs[q], zeta);
        }
        out[q] = f == 0 ? zeta * omega : out[q] + zeta * omega;
      }
    }
  }

  template <int C, bool leaky>
  void ScoreRowBackward(const Pairs& p, int r, const V* const* e, const V* g, V* dmine, V* dtheirs,
                        V* dpointer) {
    for (int f = 0; f < H; ++f) {
      const V own = p.mine[f * n + r] + (leaky ? V{} : V{} + w[p.bias + f]);
      const V* theirs = p.theirs + f * n;
      V* dt = dtheirs + f * n;
      const T omega = w[p.omega + f];
      T weight[C];
      for (int c = 0; c < C; ++c) weight[c] = w[p.edge + c * H + f];
      V downs{}, domega{}, dedge[C] = {};
      for (int q = 0; q < n; ++q) {
        V zeta = own;
        for (int c = 0; c < C; ++c) zeta += e[c][q] * weight[c];
        V d;
        if (leaky) {
          zeta += theirs[q];
          if (p.bias >= 0) zeta += w[p.bias + r * n + q];
          domega += g[q] * Max(zeta, T(s.slope) * zeta);
          d = g[q] * omega;
          d = zeta >= kZero ? d : T(s.slope) * d;
          dt[q] += d;
          if (p.bias >= 0) dw[p.bias + r * n + q] += d;
        } else {
          domega += g[q] * Max(theirs[q], zeta);
          const V whole = g[q] * omega;
          const V tied = zeta == theirs[q] ? whole * T(.5) : V{};  // a tie is shared, as in JAX
          d = zeta > theirs[q] ? whole : tied;
          dt[q] += whole - d;
        }
        downs += d;
        for (int c = 0; c < C; ++c) dedge[c] += e[c][q] * d;
        if (C == 3) dpointer[q] += d * weight[C - 1];
      }
      dmine[f * n + r] += downs;
      dw[p.omega + f] += domega;
      if (!leaky) dw[p.bias + f] += downs;
      for (int c = 0; c < C; ++c) dw[p.edge + c * H + f] += dedge[c];
    }
  }

  template <bool leaky> void Score(const Pairs& p, const V* there, V* out) {
    for (int r = 0; r < n; ++r) {
      const V* e[3] = {&edges[r * n], &edges[nn + r * n], there + r * n};
      if (s.feeds_hints) ScoreRow<3, leaky>(p, r, e, out + r * n);
      else ScoreRow<2, leaky>(p, r, e, out + r * n);
    }
  }

  template <bool leaky>
  void ScoreBackward(const Pairs& p, const V* there, const V* g, V* dmine, V* dtheirs, V* dthere) {
    for (int r = 0; r < n; ++r) {
      const V* e[3] = {&edges[r * n], &edges[nn + r * n], there + r * n};
      const V* gr = g + r * n;
      if (s.feeds_hints) ScoreRowBackward<3, leaky>(p, r, e, gr, dmine, dtheirs, dthere + r * n);
      else ScoreRowBackward<2, leaky>(p, r, e, gr, dmine, dtheirs, nullptr);
    }
  }

  // ---- one step of GATv2

  Pairs Meeting(int t) const {
    const V* p = &projected[t * 4 * H * n];
    return {p, p + H * n, at.edge, at.omega, s.bias ? at.bias : -1};
  }

  // The channels that edges have at some time, given the pointers then.
  const V* Channel(int c, const V* there) const { return c < s.edge_inputs ? &edges[c * nn] : there; }

  void Step(int t) {
    const V* there = Pointers(t);
    V* p = &projected[t * 4 * H * n];
    Affine(RowsOf({{X(t), N}, {Hidden(t), H}}), at.projections, at.projections_bias, 4 * H, p);
    for (int f = 0; f < H; ++f)
      for (int i = 0; i < n; ++i) p[f * n + i] += w[at.everywhere + f];
    Score<true>(Meeting(t), there, scores.data());
    for (int i = 0; i < n; ++i) {
      V* a = &alpha[t * nn + i * n];
      V top = V{} - T(1e30), total{};
      for (int j = 0; j < n; ++j) {
        V near = neighbours[i * n + j];
        if (s.feeds_hints) near = there[i * n + j] + there[j * n + i] > T(.5) ? V{} + T(1) : near;
        a[j] = near > kZero ? scores[i * n + j] : V{} - T(1e9);
        top = Max(top, a[j]);
      }
      for (int j = 0; j < n; ++j) total += a[j] = Exp(a[j] - top);
      const V share = T(1) / total;
      for (int j = 0; j < n; ++j) a[j] *= share;

      V* zs = &z[t * H * n + i];  // of unit f: zs[f * n]
      for (int f = 0; f < H; ++f) {
        const V* value = p + (2 * H + f) * n;
        V sum = p[(3 * H + f) * n + i];
        for (int j = 0; j < n; ++j) sum += a[j] * value[j];
        zs[f * n] = sum;
      }
      if (s.edge_info) {
        for (int f = 0; f < H; ++f) zs[f * n] += w[at.info_bias + f];
        for (int c = 0; c < E; ++c) {
          const V* e = Channel(c, there) + i * n;
          V met{};
          for (int j = 0; j < n; ++j) met += a[j] * e[j];
          for (int f = 0; f < H; ++f) zs[f * n] += met * w[at.info + c * H + f];
        }
      }
      V* after = Hidden(t + 1) + i;
      V unit[H], inverse;
      if (s.norm) Normalise(zs, unit, inverse);
      for (int f = 0; f < H; ++f)
        after[f * n] = s.norm ? unit[f] * w[at.scale + f] + w[at.offset + f] : Max(zs[f * n], V{});
    }
  }

  // relu, less its mean over the units, over its deviation.
  void Normalise(const V* zs, V* unit, V& inverse) const {
    V mean{}, variance{};
    for (int f = 0; f < H; ++f) mean += unit[f] = Max(zs[f * n], V{});
    mean *= T(1) / H;
    for (int f = 0; f < H; ++f) unit[f] -= mean, variance += unit[f] * unit[f];
    inverse = T(1) / Sqrt(variance * (T(1) / H) + T(1e-5));
    for (int f = 0; f < H; ++f) unit[f] *= inverse;
  }

  void StepBackward(int t) {
    const V *there = Pointers(t), *p = &projected[t * 4 * H * n];
    Clear({&dprojected});
    V* dvalue = &dprojected[2 * H * n];
    for (int i = 0; i < n; ++i) {
      const V *zs = &z[t * H * n + i], *a = &alpha[t * nn + i * n], *dafter = &dh_next[i];
      V dz[H];
      for (int f = 0; f < H; ++f) dz[f] = dafter[f * n];
      if (s.norm) {
        V unit[H], inverse, mean{}, along{};
        Normalise(zs, unit, inverse);
        for (int f = 0; f < H; ++f) {
          dw[at.scale + f] += dz[f] * unit[f];
          dw[at.offset + f] += dz[f];
          dz[f] *= w[at.scale + f];
          mean += dz[f];
          along += dz[f] * unit[f];
        }
        for (int f = 0; f < H; ++f)
          dz[f] = inverse * (dz[f] - (mean + unit[f] * along) * (T(1) / H));
      }
      V* da = &dscores[i * n];
      for (int f = 0; f < H; ++f) {
        dz[f] = zs[f * n] > kZero ? dz[f] : V{};
        dprojected[(3 * H + f) * n + i] = dz[f];
        const V* value = p + (2 * H + f) * n;
        for (int j = 0; j < n; ++j) {
          da[j] = f == 0 ? dz[f] * value[j] : da[j] + dz[f] * value[j];
          dvalue[f * n + j] += a[j] * dz[f];
        }
      }
      if (s.edge_info) {
        for (int f = 0; f < H; ++f) dw[at.info_bias + f] += dz[f];
        for (int c = 0; c < E; ++c) {
          const V* e = Channel(c, there) + i * n;
          V met{}, dmet{};
          for (int f = 0; f < H; ++f) dmet += dz[f] * w[at.info + c * H + f];
          for (int j = 0; j < n; ++j) {
            met += a[j] * e[j];
            da[j] += dmet * e[j];
            if (c >= s.edge_inputs) dpointers[i * n + j] += a[j] * dmet;
          }
          for (int f = 0; f < H; ++f) dw[at.info + c * H + f] += met * dz[f];
        }
      }
      V across{};
      for (int j = 0; j < n; ++j) across += a[j] * da[j];
      for (int j = 0; j < n; ++j) da[j] = a[j] * (da[j] - across);
    }
    ScoreBackward<true>(Meeting(t), there, dscores.data(), &dprojected[0], &dprojected[H * n],
                        dpointers.data());
    for (int f = 0; f < H; ++f)
      for (int i = 0; i < n; ++i) dw[at.everywhere + f] += dprojected[f * n + i];
    AffineBackward(RowsOf({{X(t), N}, {Hidden(t), H}}), RowsOf({{&dx[0], N}, {&dh[0], H}}),
                   at.projections, at.projections_bias, 4 * H, &dprojected[0]);
  }

  // ---- decoders

  struct Read {
    const V *x, *before, *after, *pointers;
  };

  Rows RowsRead(const Read& r) const { return RowsOf({{r.x, N}, {r.before, H}, {r.after, H}}); }

  Pairs Meeting(const Decoder& d, const V* found) const {
    const V* mine = found + d.column * n;
    return {mine + H * n, mine, d.edge, d.score, d.target};
  }

  // The probabilities soft[i, j] of pointing from i to j, and their loss.
  void Point(const Decoder& d, const V* found, const V* there, const V* truth, V weight, V* soft) {
    if (s.simplified) {
      const V *mine = found + d.column * n, *positions = X(0);  // the first input
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
          const V apart = mine[i] - positions[j];
          scores[j * n + i] = T(-s.sharpness) * Max(apart, -apart);
        }
    } else {
      Score<false>(Meeting(d, found), there, scores.data());  // its bias changes no probability
    }
    for (int i = 0; i < n; ++i) {
      V top = V{} - T(1e30), chosen{}, total{};
      for (int j = 0; j < n; ++j) {
        const V score = scores[j * n + i];
        top = Max(top, score);
        chosen = truth[i] == T(j) ? score : chosen;
      }
      for (int j = 0; j < n; ++j) total += soft[i * n + j] = Exp(scores[j * n + i] - top);
      const V share = T(1) / total;
      for (int j = 0; j < n; ++j) soft[i * n + j] *= share;
      loss += weight * (top + Log(total) - chosen);
    }
  }

  // `dsoft` is the gradient of the probabilities, or null if nobody uses them.
  void PointBackward(const Decoder& d, const V* found, const V* there, const V* truth, V weight,
                     const V* soft, const V* dsoft, V* dthere) {
    for (int i = 0; i < n; ++i) {
      V across{};
      for (int j = 0; dsoft && j < n; ++j) across += dsoft[i * n + j] * soft[i * n + j];
      for (int j = 0; j < n; ++j) {
        const V share = soft[i * n + j];
        V g = weight * (share - (truth[i] == T(j) ? V{} + T(1) : V{}));
        if (dsoft) g += share * (dsoft[i * n + j] - across);
        dscores[j * n + i] = g;
      }
    }
    V* dmine = &dseen[d.column * n];
    if (s.simplified) {
      const V *mine = found + d.column * n, *positions = X(0);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
          const V apart = mine[i] - positions[j], g = T(s.sharpness) * dscores[j * n + i];
          dmine[i] += apart > kZero ? -g : (apart < kZero ? g : V{});
        }
    } else {
      ScoreBackward<false>(Meeting(d, found), there, dscores.data(), dmine + H * n, dmine, dthere);
    }
  }

  V WeightAt(int t) const { return lengths > T(t + 1) ? hint_weight : V{}; }

  void DecodeHints(int t) {
    V* found = &seen[t * at.hints.width * n];
    Affine(RowsRead({X(t), Hidden(t), Hidden(t + 1)}), at.hints.readers, at.hints.bias,
           at.hints.width, found);
    const V weight = WeightAt(t);
    const int then = std::min(t + 1, s.times - 1);
    for (const Decoder& d : at.hints.each) {
      if (d.kind == kPointer) {
        Point(d, found, Pointers(t), &true_pointers[then * n], weight, Pointers(t + 1));
        continue;
      }
      V* fed = X(t + 1) + (s.node_inputs + d.place) * n;
      for (int i = 0; i < n; ++i) {
        const V value = found[d.column * n + i], truth = true_hints[(then * K + d.place) * n + i];
        if (d.kind == kScalar) {
          loss += weight * (value - truth) * (value - truth);
          if (s.feeds_hints) fed[i] = value;
        } else {
          const V tail = Log(T(1) + Exp(-Max(value, -value)));
          loss += weight * (Max(value, V{}) - value * truth + tail);
          if (s.feeds_hints) fed[i] = Sigmoid(value);
        }
      }
    }
  }

  void DecodeHintsBackward(int t) {
    const V* found = &seen[t * at.hints.width * n];
    const V weight = WeightAt(t);
    const int then = std::min(t + 1, s.times - 1);
    const bool used = s.feeds_hints && t + 1 < steps;
    Clear({&dseen});
    for (const Decoder& d : at.hints.each) {
      if (d.kind == kPointer) {
        PointBackward(d, found, Pointers(t), &true_pointers[then * n], weight, Pointers(t + 1),
                      used ? &dpointers_next[0] : nullptr, &dpointers[0]);
        continue;
      }
      const V* dfed = &dx_next[(s.node_inputs + d.place) * n];
      for (int i = 0; i < n; ++i) {
        const V value = found[d.column * n + i], truth = true_hints[(then * K + d.place) * n + i];
        const V back = used ? dfed[i] : V{};
        const V share = Sigmoid(value);
        dseen[d.column * n + i] = d.kind == kScalar
                                      ? back + weight * T(2) * (value - truth)
                                      : back * share * (T(1) - share) + weight * (share - truth);
      }
    }
    AffineBackward(RowsRead({X(t), Hidden(t), Hidden(t + 1)}),
                   RowsRead({&dx[0], &dh[0], &dh_next[0]}), at.hints.readers, at.hints.bias,
                   at.hints.width, &dseen[0]);
  }

  // The output of each lane is read from its own last step.
  void DecodeOutput() {
    const Decoder& d = at.outputs.each[0];
    const Read read{&last_x[0], &last_before[0], &last_after[0], &last_pointers[0]};
    Clear({&dlast_x, &dlast_before, &dlast_after, &dlast_pointers, &dseen});
    V *found = &output_seen[0], *soft = &output_soft[0];
    Affine(RowsRead(read), at.outputs.readers, at.outputs.bias, at.outputs.width, found);
    Point(d, found, read.pointers, &true_output[0], output_weight, soft);
    PointBackward(d, found, read.pointers, &true_output[0], output_weight, soft, nullptr,
                  &dlast_pointers[0]);
    AffineBackward(RowsRead(read), RowsRead({&dlast_x[0], &dlast_before[0], &dlast_after[0]}),
                   at.outputs.readers, at.outputs.bias, at.outputs.width, &dseen[0]);
  }

  // ---- the whole

  void Choose(std::vector<V>& to, const V* from, V chosen) {
    for (size_t k = 0; k < to.size(); ++k) to[k] = chosen > kZero ? from[k] : to[k];
  }

  void AddChosen(std::vector<V>& to, const std::vector<V>& from, V chosen) {
    for (size_t k = 0; k < from.size(); ++k) to[k] += chosen * from[k];
  }

  V IsLast(int t) const {
    return Max(lengths - T(2), V{}) == T(t) ? V{} + T(1) : V{};
  }

  void Run() {
    for (int t = 0; t < steps; ++t) {
      Step(t);
      if (!s.hints.empty()) DecodeHints(t);
      const V here = IsLast(t);
      Choose(last_x, X(t), here);
      Choose(last_before, Hidden(t), here);
      Choose(last_after, Hidden(t + 1), here);
      if (s.feeds_hints) Choose(last_pointers, Pointers(t), here);
    }
    DecodeOutput();
    Clear({&dx_next, &dh_next, &dpointers_next});
    for (int t = steps - 1; t >= 0; --t) {
      Clear({&dx, &dh, &dpointers});
      const V here = IsLast(t);
      AddChosen(dx, dlast_x, here);
      AddChosen(dh, dlast_before, here);
      AddChosen(dh_next, dlast_after, here);
      if (s.feeds_hints) AddChosen(dpointers, dlast_pointers, here);
      if (!s.hints.empty()) DecodeHintsBackward(t);
      StepBackward(t);
      dx.swap(dx_next);
      dh.swap(dh_next);
      dpointers.swap(dpointers_next);
    }
  }
};

template <typename T> T Sum(typename Register<T>::V v) {
  T sum = 0;
  for (int lane = 0; lane < kLanes<T>; ++lane) sum += v[lane];
  return sum;
}

template <typename T, int H>
void AllSeeds(const Shape& s, int64_t seeds, const T* parameters,
              const typename Pass<T, H>::Inputs& in, T* loss, T* gradient) {
  const Places<H> at(s);
  Pass<T, H> pass(s, at);
  const int64_t nodes = s.batch * s.nodes, pairs = nodes * s.nodes;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    const typename Pass<T, H>::Inputs mine{
        in.nodes + seed * nodes * s.node_inputs,     in.edges + seed * pairs * s.edge_inputs,
        in.hints + seed * s.times * nodes * pass.K,  in.pointers + seed * s.times * nodes * pass.points,
        in.output + seed * nodes,                    in.lengths + seed * s.batch};
    T counted = 0;
    for (int b = 0; b < s.batch; ++b) counted += std::max<T>(0, mine.lengths[b] - 1);
    const T hint_share = 1 / std::max<T>(1, counted * s.nodes);
    const T output_share = T(1) / (s.batch * s.nodes);
    pass.w = parameters + seed * at.size;
    pass.loss = typename Pass<T, H>::V{};
    std::fill(pass.dw.begin(), pass.dw.end(), typename Pass<T, H>::V{});
    for (int first = 0; first < s.batch; first += kLanes<T>) {
      pass.Load(mine, first, hint_share, output_share);
      pass.Run();
    }
    loss[seed] = Sum<T>(pass.loss);
    for (int k = 0; k < at.size; ++k) gradient[seed * at.size + k] = Sum<T>(pass.dw[k]);
  }
}

template <ffi::DataType dtype>
ffi::Error Narrow(ffi::Buffer<dtype> parameters, ffi::Buffer<dtype> nodes,
                  ffi::Buffer<dtype> edges, ffi::Buffer<dtype> hints, ffi::Buffer<dtype> pointers,
                  ffi::Buffer<dtype> output, ffi::Buffer<dtype> lengths,
                  ffi::ResultBuffer<dtype> loss, ffi::ResultBuffer<dtype> gradient,
                  int64_t hidden, int64_t adjacency, int64_t everyone, ffi::Span<const int64_t> kinds,
                  int64_t feeds_hints, int64_t edge_info, int64_t bias, int64_t norm,
                  int64_t simplified, double slope, double sharpness) {
  const auto edge_dims = edges.dimensions(), hint_dims = hints.dimensions();
  const size_t rank = edge_dims.size();
  Shape s;
  s.batch = edge_dims[rank - 4];
  s.nodes = edge_dims[rank - 3];
  s.edge_inputs = edge_dims[rank - 1];
  s.node_inputs = nodes.dimensions().back();
  s.times = hint_dims[hint_dims.size() - 4];
  s.adjacency = adjacency;
  s.everyone = everyone;
  s.hints.assign(kinds.begin(), kinds.end());
  s.feeds_hints = feeds_hints, s.edge_info = edge_info, s.bias = bias, s.norm = norm;
  s.simplified = simplified, s.slope = slope, s.sharpness = sharpness;
  const int64_t seeds = lengths.element_count() / s.batch;
  const auto run = [&](auto width) -> ffi::Error {
    constexpr int H = decltype(width)::value;
    using T = ffi::NativeType<dtype>;
    if (Places<H>(s).size * seeds != static_cast<int64_t>(parameters.element_count()))
      return ffi::Error::InvalidArgument("narrow: parameters of another size than the network's");
    const typename Pass<T, H>::Inputs in{nodes.typed_data(),    edges.typed_data(),
                                         hints.typed_data(),    pointers.typed_data(),
                                         output.typed_data(),   lengths.typed_data()};
    AllSeeds<T, H>(s, seeds, parameters.typed_data(), in, loss->typed_data(),
                   gradient->typed_data());
    return ffi::Error::Success();
  };
  if (hidden == 4) return run(std::integral_constant<int, 4>());
  return ffi::Error::InvalidArgument("narrow: made for 4 hidden units");
}

template <ffi::DataType dtype> auto Binding() {
  return ffi::Ffi::Bind()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Attr<int64_t>("hidden")
      .template Attr<int64_t>("adjacency")
      .template Attr<int64_t>("everyone")
      .template Attr<ffi::Span<const int64_t>>("kinds")
      .template Attr<int64_t>("feeds_hints")
      .template Attr<int64_t>("edge_info")
      .template Attr<int64_t>("bias")
      .template Attr<int64_t>("norm")
      .template Attr<int64_t>("simplified")
      .template Attr<double>("slope")
      .template Attr<double>("sharpness");
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(narrow_f32, Narrow<ffi::F32>, Binding<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(narrow_f64, Narrow<ffi::F64>, Binding<ffi::F64>());
