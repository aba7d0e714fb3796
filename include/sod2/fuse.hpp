// Fusion: problems, plans, planner, validator.
#pragma once

#include <sod2/fuse/plan.hpp>
#include <sod2/fuse/planner.hpp>
#include <sod2/fuse/rewrite.hpp>
#include <sod2/fuse/validate.hpp>
#include <sod2/fuse/views.hpp>
