#pragma once

// Semantic versioning; before 1.0 a minor version may change the API.
#define VKGEMM_VERSION_MAJOR 0
#define VKGEMM_VERSION_MINOR 1
#define VKGEMM_VERSION_PATCH 0
