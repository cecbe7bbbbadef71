// The pairwise score and its gradient, for CPUs. See pairwise.py for the mathematics.
//
// Shapes; `groups` are any number of leading axes (or none), for seeds that run side by side:
//   u, v    [groups, batch, nodes, hidden]         what receiver i and sender j bring
//   edges   [groups, batch, nodes, nodes, channels]
//   weight  [groups, channels, hidden]
//   omega   [groups, heads, hidden / heads]
//   scores  [groups, batch, heads, nodes, nodes]
// The backward pass returns the gradient of each; of weight and omega, per sample:
//   d_weight [groups, batch, channels, hidden]
//   d_omega  [groups, batch, heads, hidden / heads]
// Samples are independent, so the result does not depend on how many threads share the work.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sharing.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int64_t kLeaky = 0;  // leaky_relu(u_i + v_j + e_ij·W)
                               // otherwise: max(u_i, v_j + e_ij·W)

struct Sizes {
  int64_t groups, batch, nodes, hidden, channels, heads;
};

// One sample. A head's units are innermost and contiguous.
template <typename T, bool leaky, int C>
void Forward(const Sizes& s, T slope, const T* u, const T* v, const T* edges, const T* weight,
             const T* omega, T* scores) {
  const int64_t n = s.nodes, H = s.hidden, F = H / s.heads;
  for (int64_t h = 0; h < s.heads; ++h) {
    const T* __restrict__ w = omega + h * F;
    const T* __restrict__ W = weight + h * F;
    for (int64_t i = 0; i < n; ++i) {
      const T* __restrict__ ui = u + i * H + h * F;
      for (int64_t j = 0; j < n; ++j) {
        const T* __restrict__ vj = v + j * H + h * F;
        T e[C];
        for (int c = 0; c < C; ++c) e[c] = edges[(i * n + j) * C + c];
        T total = 0;
        for (int64_t f = 0; f < F; ++f) {
          T z = vj[f];
          for (int c = 0; c < C; ++c) z += e[c] * W[c * H + f];
          if constexpr (leaky) {
            z += ui[f];
            z = z >= 0 ? z : slope * z;
          } else {
            z = z >= ui[f] ? z : ui[f];
          }
          total += w[f] * z;
        }
        scores[(h * n + i) * n + j] = total;
      }
    }
  }
}

template <typename T, bool leaky, int C>
void Backward(const Sizes& s, T slope, const T* u, const T* v, const T* edges, const T* weight,
              const T* omega, const T* grad, T* rows, T* columns, T* d_edges, T* mixed,
              T* d_omega) {
  const int64_t n = s.nodes, H = s.hidden, F = H / s.heads;
  std::fill(rows, rows + n * H, T(0));
  std::fill(columns, columns + n * H, T(0));
  std::fill(mixed, mixed + C * H, T(0));
  std::fill(d_edges, d_edges + n * n * C, T(0));
  for (int64_t h = 0; h < s.heads; ++h) {
    const T* __restrict__ w = omega + h * F;
    const T* __restrict__ W = weight + h * F;
    T* __restrict__ M = mixed + h * F;
    for (int64_t i = 0; i < n; ++i) {
      const T* __restrict__ ui = u + i * H + h * F;
      T* __restrict__ ri = rows + i * H + h * F;
      for (int64_t j = 0; j < n; ++j) {
        const T* __restrict__ vj = v + j * H + h * F;
        T* __restrict__ cj = columns + j * H + h * F;
        const T g = grad[(h * n + i) * n + j], small = g * slope, half = g / 2;
        T e[C], de[C] = {};
        for (int c = 0; c < C; ++c) e[c] = edges[(i * n + j) * C + c];
#pragma GCC ivdep
        for (int64_t f = 0; f < F; ++f) {
          T z = vj[f];
          for (int c = 0; c < C; ++c) z += e[c] * W[c * H + f];
          T t;
          if constexpr (leaky) {
            t = z + ui[f] >= 0 ? g : small;
          } else {
            const T above = z > ui[f] ? half : T(0), equal = z >= ui[f] ? half : T(0);
            t = above + equal;
          }
          ri[f] += t;
          cj[f] += t;
          const T p = t * w[f];
          for (int c = 0; c < C; ++c) {
            M[c * H + f] += e[c] * t;
            de[c] += p * W[c * H + f];
          }
        }
        for (int c = 0; c < C; ++c) d_edges[(i * n + j) * C + c] += de[c];
      }
    }
    // From the sums to the gradients, in place.
    T* __restrict__ dw = d_omega + h * F;
    std::fill(dw, dw + F, T(0));
    for (int64_t i = 0; i < n; ++i) {
      T* __restrict__ ri = rows + i * H + h * F;
      T* __restrict__ ci = columns + i * H + h * F;
      const T* __restrict__ ui = u + i * H + h * F;
      const T* __restrict__ vi = v + i * H + h * F;
      T whole = 0;
      for (int64_t j = 0; j < n; ++j) whole += grad[(h * n + i) * n + j];
      for (int64_t f = 0; f < F; ++f) {
        const T r = leaky ? ri[f] : whole - ri[f];  // what the maximum did not take from zeta
        dw[f] += ui[f] * r + vi[f] * ci[f];
        ri[f] = r * w[f];
        ci[f] *= w[f];
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int64_t f = 0; f < F; ++f) {
        dw[f] += W[c * H + f] * M[c * H + f];
        M[c * H + f] *= w[f];
      }
    }
  }
}

// Heads of few units: senders are innermost instead, so that every loop is over many numbers. What
// belongs to a sender is turned around first; `room` holds it.
constexpr int64_t kNarrow = 16;

template <typename T>
T* Room(int64_t size) {
  static thread_local std::vector<T> room;
  if (static_cast<int64_t>(room.size()) < size) room.resize(size);
  return room.data();
}

template <typename T>
void Turn(const T* from, T* to, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * rows + r] = from[r * columns + c];
}

template <typename T, bool leaky, int C>
void NarrowForward(const Sizes& s, T slope, const T* u, const T* v, const T* edges,
                   const T* weight, const T* omega, T* scores) {
  const int64_t n = s.nodes, H = s.hidden, F = H / s.heads;
  T* __restrict__ vt = Room<T>((H + C) * n);
  T* __restrict__ et = vt + H * n;
  Turn(v, vt, n, H);
  for (int64_t i = 0; i < n; ++i) {
    Turn(edges + i * n * C, et, n, C);
    for (int64_t k = 0; k < H; ++k) {
      T* __restrict__ out = scores + ((k / F) * n + i) * n;
      const T ui = u[i * H + k], w = omega[k];
      if (k % F == 0) std::fill(out, out + n, T(0));
      for (int64_t j = 0; j < n; ++j) {
        T z = vt[k * n + j];
        for (int c = 0; c < C; ++c) z += et[c * n + j] * weight[c * H + k];
        if constexpr (leaky) {
          z += ui;
          z = z >= 0 ? z : slope * z;
        } else {
          z = z >= ui ? z : ui;
        }
        out[j] += w * z;
      }
    }
  }
}

template <typename T, bool leaky, int C>
void NarrowBackward(const Sizes& s, T slope, const T* u, const T* v, const T* edges,
                    const T* weight, const T* omega, const T* grad, T* d_u, T* d_v, T* d_edges,
                    T* d_weight, T* d_omega) {
  const int64_t n = s.nodes, H = s.hidden, F = H / s.heads;
  T* __restrict__ vt = Room<T>((2 * H + 2 * C) * n);
  T* __restrict__ columns = vt + H * n;
  T* __restrict__ et = columns + H * n;
  T* __restrict__ det = et + C * n;
  Turn(v, vt, n, H);
  std::fill(columns, columns + H * n, T(0));
  std::fill(d_weight, d_weight + C * H, T(0));
  std::fill(d_omega, d_omega + H, T(0));
  for (int64_t i = 0; i < n; ++i) {
    Turn(edges + i * n * C, et, n, C);
    std::fill(det, det + C * n, T(0));
    for (int64_t k = 0; k < H; ++k) {
      const T* __restrict__ g = grad + ((k / F) * n + i) * n;
      const T ui = u[i * H + k];
      T W[C], p[C], mixed[C] = {}, row = 0, whole = 0;
      for (int c = 0; c < C; ++c) W[c] = weight[c * H + k];
      for (int c = 0; c < C; ++c) p[c] = omega[k] * W[c];
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) {
        T z = vt[k * n + j];
        for (int c = 0; c < C; ++c) z += et[c * n + j] * W[c];
        T t;
        if constexpr (leaky) {
          t = z + ui >= 0 ? g[j] : g[j] * slope;
        } else {
          t = g[j] * ((z > ui ? T(0.5) : T(0)) + (z >= ui ? T(0.5) : T(0)));
        }
        row += t;
        whole += g[j];
        columns[k * n + j] += t;
        for (int c = 0; c < C; ++c) {
          mixed[c] += et[c * n + j] * t;
          det[c * n + j] += p[c] * t;
        }
      }
      const T r = leaky ? row : whole - row;
      d_u[i * H + k] = r * omega[k];
      d_omega[k] += ui * r;
      for (int c = 0; c < C; ++c) d_weight[c * H + k] += mixed[c];
    }
    Turn(det, d_edges + i * n * C, C, n);
  }
  for (int64_t k = 0; k < H; ++k) {
    for (int64_t j = 0; j < n; ++j) {
      d_omega[k] += vt[k * n + j] * columns[k * n + j];
      d_v[j * H + k] = columns[k * n + j] * omega[k];
    }
    for (int c = 0; c < C; ++c) {
      d_omega[k] += weight[c * H + k] * d_weight[c * H + k];
      d_weight[c * H + k] *= omega[k];
    }
  }
}

// Calls f with the number of channels as a constant.
template <typename F>
ffi::Error WithChannels(int64_t channels, F&& f) {
  switch (channels) {
    case 1: f(std::integral_constant<int, 1>()); break;
    case 2: f(std::integral_constant<int, 2>()); break;
    case 3: f(std::integral_constant<int, 3>()); break;
    case 4: f(std::integral_constant<int, 4>()); break;
    case 5: f(std::integral_constant<int, 5>()); break;
    default: return ffi::Error::InvalidArgument("pairwise: 1 to 5 edge channels");
  }
  return ffi::Error::Success();
}

template <ffi::DataType dtype>
Sizes SizesOf(const ffi::Buffer<dtype>& u, const ffi::Buffer<dtype>& weight,
              const ffi::Buffer<dtype>& omega) {
  const auto d = u.dimensions(), w = weight.dimensions(), o = omega.dimensions();
  const size_t r = d.size();
  int64_t groups = 1;
  for (size_t axis = 0; axis + 3 < r; ++axis) groups *= d[axis];
  return {groups, d[r - 3], d[r - 2], d[r - 1], w[w.size() - 2], o[o.size() - 2]};
}

template <ffi::DataType dtype>
ffi::Error ForwardAll(ffi::ThreadPool pool, ffi::Buffer<dtype> u, ffi::Buffer<dtype> v,
                      ffi::Buffer<dtype> edges, ffi::Buffer<dtype> weight, ffi::Buffer<dtype> omega,
                      ffi::ResultBuffer<dtype> scores, int64_t kind, double slope) {
  using T = ffi::NativeType<dtype>;
  const Sizes s = SizesOf(u, weight, omega);
  const int64_t n = s.nodes, H = s.hidden;
  const bool narrow = H / s.heads < kNarrow;
  return WithChannels(s.channels, [&](auto channels) {
    constexpr int C = decltype(channels)::value;
    ForEach(pool, s.groups * s.batch, s.groups * s.batch * n * n * H, [&](int64_t b) {
      const int64_t g = b / s.batch;
      auto run = [&](auto leaky) {
        auto* score = narrow ? NarrowForward<T, decltype(leaky)::value, C>
                             : Forward<T, decltype(leaky)::value, C>;
        score(
            s, static_cast<T>(slope), u.typed_data() + b * n * H, v.typed_data() + b * n * H,
            edges.typed_data() + b * n * n * C, weight.typed_data() + g * C * H,
            omega.typed_data() + g * H, scores->typed_data() + b * s.heads * n * n);
      };
      if (kind == kLeaky) run(std::true_type()); else run(std::false_type());
    });
  });
}

template <ffi::DataType dtype>
ffi::Error BackwardAll(ffi::ThreadPool pool, ffi::Buffer<dtype> u, ffi::Buffer<dtype> v,
                       ffi::Buffer<dtype> edges, ffi::Buffer<dtype> weight,
                       ffi::Buffer<dtype> omega, ffi::Buffer<dtype> grad,
                       ffi::ResultBuffer<dtype> d_u, ffi::ResultBuffer<dtype> d_v,
                       ffi::ResultBuffer<dtype> d_edges, ffi::ResultBuffer<dtype> d_weight,
                       ffi::ResultBuffer<dtype> d_omega, int64_t kind, double slope) {
  using T = ffi::NativeType<dtype>;
  const Sizes s = SizesOf(u, weight, omega);
  const int64_t n = s.nodes, H = s.hidden;
  const bool narrow = H / s.heads < kNarrow;
  return WithChannels(s.channels, [&](auto channels) {
    constexpr int C = decltype(channels)::value;
    ForEach(pool, s.groups * s.batch, 2 * s.groups * s.batch * n * n * H, [&](int64_t b) {
      const int64_t g = b / s.batch;
      auto run = [&](auto leaky) {
        auto* differentiate = narrow ? NarrowBackward<T, decltype(leaky)::value, C>
                                     : Backward<T, decltype(leaky)::value, C>;
        differentiate(
            s, static_cast<T>(slope), u.typed_data() + b * n * H, v.typed_data() + b * n * H,
            edges.typed_data() + b * n * n * C, weight.typed_data() + g * C * H,
            omega.typed_data() + g * H, grad.typed_data() + b * s.heads * n * n,
            d_u->typed_data() + b * n * H, d_v->typed_data() + b * n * H,
            d_edges->typed_data() + b * n * n * C, d_weight->typed_data() + b * C * H,
            d_omega->typed_data() + b * H);
      };
      if (kind == kLeaky) run(std::true_type()); else run(std::false_type());
    });
  });
}

template <ffi::DataType dtype>
auto ForwardBinding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Attr<int64_t>("kind")
      .template Attr<double>("slope");
}

template <ffi::DataType dtype>
auto BackwardBinding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Attr<int64_t>("kind")
      .template Attr<double>("slope");
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(pairwise_forward_f32, ForwardAll<ffi::F32>,
                              ForwardBinding<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(pairwise_forward_f64, ForwardAll<ffi::F64>,
                              ForwardBinding<ffi::F64>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(pairwise_backward_f32, BackwardAll<ffi::F32>,
                              BackwardBinding<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(pairwise_backward_f64, BackwardAll<ffi::F64>,
                              BackwardBinding<ffi::F64>());
