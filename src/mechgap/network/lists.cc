// Attention along lists of pairs, and pointers to the best of all nodes. See lists.py.
//
// Pairs are ordered by receiver; those of receiver i are offsets[i] .. offsets[i + 1].
//   u, v      [nodes, hidden]     what receiver i and sender j bring
//   senders   [pairs]
//   channels  [pairs, channels]   what is told of each pair
//   weight    [channels, hidden]
//   omega     [heads, hidden / heads]
// Hidden units whose ω is 0 score nothing, and are left out: in compiled networks most are.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "sharing.h"
#include "xla/ffi/api/ffi.h"

namespace {

constexpr int64_t kRows = 64;   // rows that one thread takes at once
constexpr int64_t kGroup = 32;  // senders that are scored side by side

template <typename T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

int64_t Groups(int64_t count) { return (count + kGroup - 1) / kGroup; }

struct Leaky {
  template <typename T>
  static T Meet(T u, T z, T slope) {
    const T sum = u + z;
    return sum >= 0 ? sum : slope * sum;
  }
};

struct Maximum {
  template <typename T>
  static T Meet(T u, T z, T) {
    return z >= u ? z : u;
  }
};

// One head's scores  sum_f w_f meet(u_if, v_jf + told W_f).
template <typename T, typename Meeting>
class Head {
 public:
  int64_t size, channels;
  std::vector<T> omega, u, v, weight;
  T slope;
  bool told = false;  // whether anything that is told of a pair matters

  Head(const T* all_u, const T* all_v, const T* all_weight, const T* all_omega, int64_t n,
       int64_t hidden, int64_t channels, int64_t begin, int64_t end, T slope)
      : channels(channels), slope(slope) {
    std::vector<int64_t> used;
    for (int64_t f = begin; f < end; ++f)
      if (all_omega[f] != 0) used.push_back(f);
    size = used.size();
    auto pick = [&](const T* all, int64_t rows, std::vector<T>& to) {
      to.resize(rows * size);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < size; ++k) to[r * size + k] = all[r * hidden + used[k]];
    };
    pick(all_omega, 1, omega);
    pick(all_u, n, u);
    pick(all_v, n, v);
    pick(all_weight, channels, weight);
    told = std::any_of(weight.begin(), weight.end(), [](T w) { return w != 0; });
  }

  T Score(int64_t i, int64_t j, const T* channel) const {
    const T *__restrict__ ui = u.data() + i * size, *__restrict__ vj = v.data() + j * size;
    const T* __restrict__ w = omega.data();
    T score = 0;
    if (!told) {
      for (int64_t k = 0; k < size; ++k) score += w[k] * Meeting::Meet(ui[k], vj[k], slope);
      return score;
    }
    for (int64_t k = 0; k < size; ++k) {
      T z = vj[k];
      for (int64_t c = 0; c < channels; ++c) z += channel[c] * weight[c * size + k];
      score += w[k] * Meeting::Meet(ui[k], z, slope);
    }
    return score;
  }
};

// Senders in groups, unit by unit, so that a group is scored at once.
template <typename T>
struct Tiles {
  int64_t count = 0, size = 0;
  std::vector<T> units;  // [groups, size, kGroup]

  Tiles(int64_t count, int64_t size)
      : count(count), size(size), units(Groups(count) * size * kGroup) {}

  T& At(int64_t j, int64_t k) { return units[((j / kGroup) * size + k) * kGroup + j % kGroup]; }
  T At(int64_t j, int64_t k) const {
    return units[((j / kGroup) * size + k) * kGroup + j % kGroup];
  }

  template <typename Meeting>
  void Score(const Head<T, Meeting>& head, const T* u, int64_t group, T* scores) const {
    const T* __restrict__ here = units.data() + group * size * kGroup;
    std::fill(scores, scores + kGroup, T(0));
    for (int64_t k = 0; k < size; ++k) {
      const T uk = u[k], w = head.omega[k];
      for (int64_t r = 0; r < kGroup; ++r)
        scores[r] += w * Meeting::Meet(uk, here[k * kGroup + r], head.slope);
    }
  }
};

// Softmax over each receiver's pairs, and what it selects of their senders' values. With
// `everyone` all nodes are senders, and pairs are those of which something is told.
template <ffi::DataType dtype>
ffi::Error Attend(ffi::ThreadPool pool, ffi::Buffer<dtype> u_, ffi::Buffer<dtype> v_,
                  ffi::Buffer<dtype> values_, ffi::Buffer<dtype> channels_,
                  ffi::Buffer<dtype> weight_, ffi::Buffer<dtype> omega_,
                  ffi::Buffer<ffi::S32> offsets_, ffi::Buffer<ffi::S32> senders_,
                  ffi::ResultBuffer<dtype> selected_, ffi::ResultBuffer<dtype> attention_,
                  double slope, bool everyone) {
  using T = ffi::NativeType<dtype>;
  const int64_t n = u_.dimensions()[0], H = u_.dimensions()[1];
  const int64_t P = senders_.dimensions()[0], C = weight_.dimensions()[0];
  const int64_t heads = omega_.dimensions()[0], F = H / heads;
  const int32_t *offsets = offsets_.typed_data(), *senders = senders_.typed_data();
  const T *values = values_.typed_data(), *channels = channels_.typed_data();
  T *selected = selected_->typed_data(), *attention = attention_->typed_data();
  std::fill(selected, selected + n * H, T(0));
  std::fill(attention + offsets[n] * heads, attention + P * heads, T(0));

  for (int64_t h = 0; h < heads; ++h) {
    const Head<T, Leaky> head(u_.typed_data(), v_.typed_data(), weight_.typed_data(),
                              omega_.typed_data(), n, H, C, h * F, (h + 1) * F,
                              static_cast<T>(slope));
    Tiles<T> tiles(everyone ? n : 0, head.size);
    for (int64_t j = 0; j < tiles.count; ++j)
      for (int64_t k = 0; k < head.size; ++k) tiles.At(j, k) = head.v[j * head.size + k];
    const int64_t cost = (everyone ? n * n : P) * (head.size + F);
    ForEach(pool, (n + kRows - 1) / kRows, cost, [&](int64_t block) {
      std::vector<T> scores;
      for (int64_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i) {
        const int64_t begin = offsets[i], end = offsets[i + 1], own = end - begin;
        const int64_t count = everyone ? n : own;
        scores.resize(everyone ? Groups(n) * kGroup : own);
        if (everyone)
          for (int64_t g = 0; g < Groups(n); ++g)
            tiles.Score(head, head.u.data() + i * head.size, g, scores.data() + g * kGroup);
        for (int64_t p = begin; p < end; ++p)
          scores[everyone ? senders[p] : p - begin] = head.Score(i, senders[p], channels + p * C);
        T largest = kLowest<T>, total = 0;
        for (int64_t s = 0; s < count; ++s) largest = std::max(largest, scores[s]);
        for (int64_t s = 0; s < count; ++s) {
          scores[s] = std::exp(scores[s] - largest);
          total += scores[s];
        }
        T* __restrict__ sum = selected + i * H + h * F;
        for (int64_t s = 0; s < count; ++s) {
          const T share = scores[s] /= total;
          if (share == 0) continue;
          const int64_t j = everyone ? s : senders[begin + s];
          const T* __restrict__ value = values + j * H + h * F;
          for (int64_t f = 0; f < F; ++f) sum[f] += share * value[f];
        }
        for (int64_t p = begin; p < end; ++p)
          attention[p * heads + h] = scores[everyone ? senders[p] : p - begin];
      }
    });
  }
  return ffi::Error::Success();
}

// A tree over senders. They are sorted by the unit that tells most and put into groups; so are
// groups, and groups of groups. No score in a group exceeds that of its corner, which has each
// unit's largest value where its weight is above 0 and the smallest where it is below. A corner is
// scored as a sender is.
template <typename T>
class Tree {
 public:
  Tree(const Head<T, Maximum>& head, int64_t n) : head_(head), most_(head.size, 0), order_(n) {
    const int64_t F = head.size;
    int64_t telling = 0;
    T widest = -1;
    for (int64_t k = 0; k < F; ++k) {
      T low = head.v[k], high = low;
      for (int64_t j = 0; j < n; ++j) {
        low = std::min(low, head.v[j * F + k]);
        high = std::max(high, head.v[j * F + k]);
      }
      most_[k] = std::max(std::abs(low), std::abs(high));
      const T told = std::abs(head.omega[k]) * (high - low);
      if (told > widest) widest = told, telling = k;
    }
    std::iota(order_.begin(), order_.end(), 0);
    if (F > 0)
      std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
        return head.v[a * F + telling] < head.v[b * F + telling];
      });
    levels_.emplace_back(n, F);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < F; ++k) levels_[0].At(r, k) = head.v[order_[r] * F + k];
    while (levels_.back().count > kGroup) {
      const Tiles<T>& below = levels_.back();
      Tiles<T> above(Groups(below.count), F);
      for (int64_t g = 0; g < above.count; ++g)
        for (int64_t k = 0; k < F; ++k) {
          T corner = below.At(g * kGroup, k);
          for (int64_t r = g * kGroup; r < std::min(below.count, (g + 1) * kGroup); ++r)
            corner = head.omega[k] > 0 ? std::max(corner, below.At(r, k))
                                       : std::min(corner, below.At(r, k));
          above.At(g, k) = corner;
        }
      levels_.push_back(std::move(above));
    }
  }

  // Whom receiver i points to: the sender of the best score, of equals the first. Those listed
  // have scores of their own where something is told of pairs.
  int32_t Best(int64_t i, const int32_t* begin, const int32_t* end, const T* channels) const {
    const T* u = head_.u.data() + i * head_.size;
    T size = 0;
    for (int64_t k = 0; k < head_.size; ++k)
      size += std::abs(head_.omega[k]) * std::max(std::abs(u[k]), most_[k]);
    if (!head_.told) end = begin;
    // Sums are rounded, those of corners too.
    const T rounding = 2 * (head_.size + 2) * std::numeric_limits<T>::epsilon() * size;
    Search search{begin, end, u, rounding, kLowest<T>, 0};
    for (const int32_t* j = begin; j != end; ++j, channels += head_.channels)
      search.Offer(head_.Score(i, *j, channels), *j);
    Descend(search, levels_.size() - 1, 0);
    return search.at;
  }

 private:
  struct Search {
    const int32_t *begin, *end;
    const T* u;
    T rounding, best;
    int32_t at;

    void Offer(T score, int32_t j) {
      if (score > best || (score == best && j < at)) best = score, at = j;
    }
  };

  void Descend(Search& search, int64_t level, int64_t group) const {
    T scores[kGroup];
    levels_[level].Score(head_, search.u, group, scores);
    const int64_t count = std::min(kGroup, levels_[level].count - group * kGroup);
    if (level == 0) {
      for (int64_t r = 0; r < count; ++r) {
        if (scores[r] < search.best) continue;
        const int32_t j = order_[group * kGroup + r];
        if (!std::binary_search(search.begin, search.end, j)) search.Offer(scores[r], j);
      }
      return;
    }
    // The most promising first: then most of the others need no look.
    const int64_t first = std::max_element(scores, scores + count) - scores;
    auto look = [&](int64_t r) {
      if (scores[r] + search.rounding >= search.best)
        Descend(search, level - 1, group * kGroup + r);
    };
    look(first);
    for (int64_t r = 0; r < count; ++r)
      if (r != first) look(r);
  }

  const Head<T, Maximum>& head_;
  std::vector<T> most_;
  std::vector<int32_t> order_;
  std::vector<Tiles<T>> levels_;
};

// Whom each node points to.
template <ffi::DataType dtype>
ffi::Error Point(ffi::ThreadPool pool, ffi::Buffer<dtype> u, ffi::Buffer<dtype> v,
                 ffi::Buffer<dtype> channels, ffi::Buffer<dtype> weight, ffi::Buffer<dtype> omega,
                 ffi::Buffer<ffi::S32> offsets, ffi::Buffer<ffi::S32> senders,
                 ffi::ResultBuffer<ffi::S32> best) {
  using T = ffi::NativeType<dtype>;
  const int64_t n = u.dimensions()[0], H = u.dimensions()[1], C = weight.dimensions()[0];
  const Head<T, Maximum> head(u.typed_data(), v.typed_data(), weight.typed_data(),
                              omega.typed_data(), n, H, C, 0, H, T(0));
  const Tree<T> tree(head, n);
  const int32_t *at = offsets.typed_data(), *listed = senders.typed_data();
  ForEach(pool, (n + kRows - 1) / kRows, n * head.size * kGroup, [&](int64_t block) {
    for (int64_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i)
      best->typed_data()[i] =
          tree.Best(i, listed + at[i], listed + at[i + 1], channels.typed_data() + at[i] * C);
  });
  return ffi::Error::Success();
}

template <ffi::DataType dtype>
auto AttendBinding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<ffi::S32>>()
      .template Arg<ffi::Buffer<ffi::S32>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Ret<ffi::Buffer<dtype>>()
      .template Attr<double>("slope")
      .template Attr<bool>("everyone");
}

template <ffi::DataType dtype>
auto PointBinding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<dtype>>()
      .template Arg<ffi::Buffer<ffi::S32>>()
      .template Arg<ffi::Buffer<ffi::S32>>()
      .template Ret<ffi::Buffer<ffi::S32>>();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_f32, Attend<ffi::F32>, AttendBinding<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_f64, Attend<ffi::F64>, AttendBinding<ffi::F64>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(point_f32, Point<ffi::F32>, PointBinding<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(point_f64, Point<ffi::F64>, PointBinding<ffi::F64>());
