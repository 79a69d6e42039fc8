/** @file
 * Errors that are made outside of librt: by libraries over it, such as librt_compiler.
 */
#ifndef RT_STATUS_H
#define RT_STATUS_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An error with this code and a copy of the message; NULL for RT_OK. The caller frees it. Where there is no
 * memory for it, an error that says so. */
RT_API rt_status* rt_status_create(rt_code code, const char* message);

#ifdef __cplusplus
}
#endif
#endif
