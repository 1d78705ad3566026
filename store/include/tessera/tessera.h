// Everything a program needs: `#include <tessera/tessera.h>`. It is every header that is installed, except for fmt.h,
// which needs the {fmt} library. With CMake, find_package(tessera) and link tessera::tessera.
//
// - open or create an array     array.h: Array::open, Array::create; group.h: Group; locate.h for any path
// - read or write a part        array.h: Array::read, Array::write; selection.h, dimensions.h: texts such as "3, :5"
// - many small reads or writes  cached_array.h: CachedArray; array.h: Array::read_points, Array::update
// - append                      array.h: Array::append; append_group.h: a whole dataset
// - copy, import, export        copy.h: copy_hierarchy, sync_hierarchy; open_source, for one array
// - compute                     reduce.h: reduce_source, coarsen_source; calc.h: calc_source
// - measure and compare         measure.h: digest, difference, statistics
// - check and repair            verify.h: verify, repair
// - seal                        seal.h: seal
// - batch and undo              edit.h: Edit, Undoable, undo; snapshot.h: create_snapshot, restore_snapshot
// - remote places               remote_options.h: RemoteOptions, for "https://…" and "s3://…"
// - draw                        picture.h: read_picture, draw_picture; pyramid.h
// - errors, progress, memory    error.h: Error; parallel.h: Progress, StopScope; memory_account.h: MemoryScope
// - own codecs and stores       codec.h: add_codec; store_kind.h: add_store_kind
//
// Everything is in namespace tessera.
#pragma once

#include <tessera/append_group.h>
#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/buffer.h>
#include <tessera/byte_io.h>
#include <tessera/cached_array.h>
#include <tessera/calc.h>
#include <tessera/chunk_grid.h>
#include <tessera/codec.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/copy_array.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/dtype.h>
#include <tessera/dtype_of.h>
#include <tessera/edit.h>
#include <tessera/element.h>
#include <tessera/error.h>
#include <tessera/far_store.h>
#include <tessera/group.h>
#include <tessera/key_value_store.h>
#include <tessera/local_files.h>
#include <tessera/locate.h>
#include <tessera/measure.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/npy.h>
#include <tessera/parallel.h>
#include <tessera/picture.h>
#include <tessera/place.h>
#include <tessera/pyramid.h>
#include <tessera/raw_array.h>
#include <tessera/reduce.h>
#include <tessera/references.h>
#include <tessera/remote_options.h>
#include <tessera/retry.h>
#include <tessera/rounding.h>
#include <tessera/row_function.h>
#include <tessera/seal.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/snapshot.h>
#include <tessera/store_kind.h>
#include <tessera/store_locks.h>
#include <tessera/value.h>
#include <tessera/verify.h>
#include <tessera/view.h>
