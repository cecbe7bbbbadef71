// Work that is shared between the threads of XLA's pool.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Runs work(index) for every index, on this thread and on whichever pool threads are free. A helper
// that starts late finds nothing left to do, so nobody ever waits for a thread that is not running.
template <typename Work>
void ForEach(ffi::ThreadPool& pool, int64_t count, int64_t cost, const Work& work) {
  constexpr int64_t kWorthSharing = 1 << 15;
  const int64_t helpers =
      cost < kWorthSharing ? 0 : std::min<int64_t>(pool.num_threads(), count) - 1;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  struct State {
    std::atomic<int64_t> next{0};
    int64_t done = 0;
    std::mutex mutex;
    std::condition_variable finished;
  };
  auto state = std::make_shared<State>();
  const int64_t piece = std::max<int64_t>(1, count / (8 * (helpers + 1)));
  // `work` is only touched by who claimed a piece, and the caller waits for all pieces.
  auto share = [state, count, piece, &work] {
    int64_t mine = 0;
    for (;;) {
      const int64_t begin = state->next.fetch_add(piece);
      if (begin >= count) break;
      const int64_t end = std::min(count, begin + piece);
      for (int64_t i = begin; i < end; ++i) work(i);
      mine += end - begin;
    }
    if (mine == 0) return;
    std::lock_guard<std::mutex> lock(state->mutex);
    state->done += mine;
    if (state->done == count) state->finished.notify_all();
  };
  for (int64_t i = 0; i < helpers; ++i) pool.Schedule(decltype(share)(share));
  share();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->finished.wait(lock, [&] { return state->done == count; });
}
