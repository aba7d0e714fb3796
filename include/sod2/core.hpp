// Everything of core/.
#pragma once

#include <sod2/core/algorithm.hpp>
#include <sod2/core/attribute.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/config.hpp>
#include <sod2/core/diagnostic.hpp>
#include <sod2/core/dtype.hpp>
#include <sod2/core/group_kind.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/core/vector.hpp>
