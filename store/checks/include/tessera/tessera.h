// Everything a program needs: `#include <tessera/tessera.h>`.
#pragma once

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/cached_array.h>
#include <tessera/copy.h>
#include <tessera/dtype.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/file_system.h>
#include <tessera/group.h>
#include <tessera/joined_source.h>
#include <tessera/ndarray.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <tessera/repair.h>
#include <tessera/seal.h>
#include <tessera/selection.h>
#include <tessera/snapshot.h>
#include <tessera/value.h>
#include <tessera/verify.h>
#include <tessera/view.h>
