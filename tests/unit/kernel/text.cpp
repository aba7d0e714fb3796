#include <algorithm>

#include "support.hpp"

using namespace kernel_test;

TEST_CASE("TfIdfVectorizer counts n-grams with gaps") {
  random_source rng;
  for (int round = 0; round < 200; ++round) {
    // A pool of random n-grams of one to three elements, over few enough values that they occur.
    const i64 least = rng.integer(1, 3), most = rng.integer(least, 3), skips = rng.integer(0, 3);
    std::vector<i64> pool, starts, columns;
    std::vector<std::vector<i64>> grams;
    for (i64 n = 1; n <= 3; ++n) {
      starts.push_back(static_cast<i64>(pool.size()));
      for (i64 k = rng.integer(0, 3); k > 0; --k) {
        grams.emplace_back();
        for (i64 i = 0; i < n; ++i) grams.back().push_back(rng.integer(0, 3));
        pool.insert(pool.end(), grams.back().begin(), grams.back().end());
        columns.push_back(static_cast<i64>(columns.size()));
      }
    }
    std::shuffle(columns.begin(), columns.end(), rng.engine);
    std::vector<float> weights;
    for (std::size_t k = 0; k < grams.size(); ++k)
      weights.push_back(static_cast<float>(rng.integer(1, 9)));
    const char* const mode = round % 3 == 0 ? "TF" : round % 3 == 1 ? "IDF" : "TFIDF";
    const i64 rows = rng.integer(0, 3), length = rng.integer(0, 12);
    const auto width = static_cast<i64>(grams.size());
    const tensor x = rng.fill(dtype::i64, {rows, length}, 0, 3);
    tensor expected(dtype::f32, {rows, width});
    for (i64 r = 0; r < rows; ++r)
      for (std::size_t g = 0; g < grams.size(); ++g) {
        const auto n = static_cast<i64>(grams[g].size());
        double found = 0;
        for (i64 gap = 0; gap <= (n == 1 ? 0 : skips); ++gap)
          for (i64 start = 0; start < length; ++start) {
            bool same = start + (n - 1) * (gap + 1) < length;
            for (i64 i = 0; i < n && same; ++i)
              same = x.at<i64>(r * length + start + i * (gap + 1)) == grams[g][idx(i)];
            found += same ? 1 : 0;
          }
        if (n < least || n > most) found = 0;
        const auto w = static_cast<double>(weights[g]);
        expected.set(r * width + columns[g], round % 3 == 0   ? found
                                             : round % 3 == 1 ? (found > 0 ? w : 0)
                                                              : found * w);
      }
    call c;
    c.name = "TfIdfVectorizer";
    c.attrs.set("mode", mode).set("min_gram_length", least);
    c.attrs.set("max_gram_length", most).set("max_skip_count", skips);
    c.attrs.set("pool_int64s", pool).set("ngram_counts", starts).set("ngram_indexes", columns);
    c.attrs.set("weights", weights);
    c.inputs = {x};
    c.outputs = {tensor(dtype::f32, {rows, width})};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
}

TEST_CASE("TfIdfVectorizer refuses pools that its counts do not cut") {
  call c;
  c.name = "TfIdfVectorizer";
  c.attrs.set("mode", "TF").set("max_gram_length", i64{2});
  c.attrs.set("pool_int64s", std::vector<i64>{1, 2, 3}).set("ngram_counts", std::vector<i64>{0, 0});
  c.attrs.set("ngram_indexes", std::vector<i64>{0});
  c.inputs = {tensor::ints({1, 2})};
  c.outputs = {tensor(dtype::f32, {1})};
  CHECK(c.run() == sod2::errc::bad_attribute);
}
