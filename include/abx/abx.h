/* abx/abx.h: all of the stable interface. */
#ifndef ABX_ABX_H
#define ABX_ABX_H

#include <abx/base.h>
#include <abx/client.h>
#include <abx/config.h>
#include <abx/error.h>
#include <abx/exec.h>
#include <abx/files.h>
#include <abx/op.h>
#include <abx/ports.h>
#include <abx/provider.h>
#include <abx/sandbox.h>
#include <abx/store.h>
#include <abx/value.h>

#endif
