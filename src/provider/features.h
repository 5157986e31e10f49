/* The registry of features. The public abx_feature_at() and abx_features_line() are here too. */
#ifndef PROVIDER_FEATURES_H
#define PROVIDER_FEATURES_H

#include <abx/provider.h>
#include <stdbool.h>
#include <stddef.h>

/* The position of id in the registry, or -1. */
int feature_index(const char *id);
bool operation_known(const char *id);

#endif
