// The version of the library. The build reads it from here; it is written nowhere else.
#pragma once

#define SOD2_VERSION_MAJOR 0
#define SOD2_VERSION_MINOR 1
#define SOD2_VERSION_PATCH 0
