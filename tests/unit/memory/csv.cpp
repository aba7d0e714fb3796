#include <doctest/doctest.h>

#include <string>

#include <sod2/memory.hpp>

using namespace sod2;

TEST_CASE("CSV is read by column names and written back") {
  auto file = read_placement_csv("id,lower,upper,size,alignment\na,0,4,100,64\nb, 2 ,6,32,1\r\n\n");
  REQUIRE(file.ok());
  CHECK(file->ids.size() == 2);
  CHECK(file->ids[1] == "b");
  CHECK(file->problem.buffers[0].size == 100);
  CHECK(file->problem.buffers[0].alignment == 64);
  CHECK(file->problem.buffers[1].lower == 2);
  const placement_plan plan = place_exact(file->problem);
  CHECK(validate(file->problem, plan).ok());
  CHECK(plan.peak_bytes == 132);
  CHECK(write_placement_csv(*file) == "id,lower,upper,size,alignment\na,0,4,100,64\nb,2,6,32,1\n");
  CHECK(write_placement_csv(*file, &plan) ==
        "id,lower,upper,size,alignment,offset\na,0,4,100,64,0\nb,2,6,32,1,100\n");
  auto swapped = read_placement_csv("size,id,upper,begin,lower\n7,x,5,junk,1\n");
  REQUIRE(swapped.ok());
  CHECK(swapped->problem.buffers[0].size == 7);
  CHECK(swapped->problem.buffers[0].upper == 5);
  CHECK(write_placement_csv(*swapped) == "id,lower,upper,size\nx,1,5,7\n");
}

TEST_CASE("malformed CSV names line and column") {
  const auto message = [](std::string_view text) {
    auto file = read_placement_csv(text);
    return file.ok() ? std::string("accepted") : std::string(file.error().message());
  };
  CHECK(message("") == "line 0: the line of column names is missing");
  CHECK(message("id,lower,upper\n") == "line 1: column 'size' is missing");
  CHECK(message("id,id,lower,upper,size\n") == "line 1: column 'id' appears twice");
  CHECK(message("id,lower,upper,size\na,0,1\n") == "line 2: too few fields");
  CHECK(message("id,lower,upper,size\na,0,1,2,3\n") == "line 2: too many fields");
  CHECK(message("id,lower,upper,size\na,0,x,2\n") == "line 2: upper is not an integer");
  CHECK(message("id,lower,upper,size\na,0,1,99999999999999999999\n") ==
        "line 2: size is not an integer");
  CHECK(message("id,lower,upper,size\na,3,1,2\n") == "buffer 0 ends before it starts");
  CHECK(message("id,lower,upper,size\n") == "accepted");
}
