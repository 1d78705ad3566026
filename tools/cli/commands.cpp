// The table of all commands. A new command needs a file with a function, and here a row and that function's
// declaration.
#include "command.h"

namespace tessera::cli {

// Each declares the options of a command, and is defined in its own file.
Run declare_create(CLI::App& app);
Run declare_info(CLI::App& app);
Run declare_tree(CLI::App& app);
Run declare_attrs(CLI::App& app);
Run declare_dims(CLI::App& app);
Run declare_formats(CLI::App& app);
Run declare_get(CLI::App& app);
Run declare_view(CLI::App& app);
Run declare_mount(CLI::App& app);
Run declare_serve(CLI::App& app);
Run declare_stats(CLI::App& app);
Run declare_diff(CLI::App& app);
Run declare_digest(CLI::App& app);
Run declare_find(CLI::App& app);
Run declare_index(CLI::App& app);
Run declare_advise(CLI::App& app);
Run declare_import(CLI::App& app);
Run declare_export(CLI::App& app);
Run declare_copy(CLI::App& app);
Run declare_rechunk(CLI::App& app);
Run declare_sync(CLI::App& app);
Run declare_refs(CLI::App& app);
Run declare_stack(CLI::App& app);
Run declare_unstack(CLI::App& app);
Run declare_concat(CLI::App& app);
Run declare_calc(CLI::App& app);
Run declare_reduce(CLI::App& app);
Run declare_regrid(CLI::App& app);
Run declare_coarsen(CLI::App& app);
Run declare_pyramid(CLI::App& app);
Run declare_plan(CLI::App& app);
Run declare_work(CLI::App& app);
Run declare_finish(CLI::App& app);
Run declare_job(CLI::App& app);
Run declare_set(CLI::App& app);
Run declare_append(CLI::App& app);
Run declare_resize(CLI::App& app);
Run declare_edit(CLI::App& app);
Run declare_undo(CLI::App& app);
Run declare_log(CLI::App& app);
Run declare_snapshot(CLI::App& app);
Run declare_group(CLI::App& app);
Run declare_mv(CLI::App& app);
Run declare_rm(CLI::App& app);
Run declare_consolidate(CLI::App& app);
Run declare_verify(CLI::App& app);
Run declare_repair(CLI::App& app);
Run declare_seal(CLI::App& app);
Run declare_cache(CLI::App& app);
Run declare_bug_report(CLI::App& app);

namespace {

constexpr const char* make = "Make";
constexpr const char* inspect = "Inspect";
constexpr const char* move = "Move";
constexpr const char* compute = "Compute";
constexpr const char* share = "Share among machines";
constexpr const char* edit = "Edit";
constexpr const char* arrange = "Arrange";
constexpr const char* check = "Check";

constexpr Command table[] = {
    {"create", make, "make a new array", "create PATH --shape SHAPE --dtype DTYPE [options]",
     "Nothing is stored but the metadata: elements that were never written read as the fill value.\n"
     "Without --chunks, a chunk shape of about 1 MiB is chosen and shown. Without --format an array takes the format "
     "of\n"
     "the group around it; where there is none it is zmeta, or what the settings name, and v3 where that cannot\n"
     "express what is asked (another codec than blosc, shards, names of dimensions). With --dims, v2's fill is null,\n"
     "because xarray takes elements that equal it for missing ones.\n\n"
     "Example:\n"
     "  tessera create grid.zarr --shape 1000000,1000 --chunks 10000,100 --dtype '<i4' --fill 42\n"
     "  tessera create months.zarr --shape 365,180 --chunks '[31,28,31,30,31,30,31,31,30,31,30,31],180' --dtype '<f4'",
     declare_create},
    {"info", inspect, "what lies at a path, at a glance", "info PATH… [options]",
     "For an array: format, dtype, shape, chunks, codec, fill, chunks stored of those possible, bytes and ratio,\n"
     "attributes, and what the original program could not read of it. Groups, zips, array files and directories are\n"
     "explained too.\n"
     "Exit code 1 for an array that was never finished.\n\n"
     "Examples:\n"
     "  tessera info grid.zarr\n"
     "  tessera info elevation.npz --json",
     declare_info},
    {"tree", inspect, "groups, arrays and array files below a directory", "tree PATH [options]",
     "Shows groups, and directories that lead to arrays; zips and .npz files show what is in them.\n"
     "Exit code 1 when one of the arrays cannot be read.\n\n"
     "Example:\n"
     "  tessera tree survey/",
     declare_tree},
    {"attrs", inspect, "show, set, rename, copy or remove attributes",
     "attrs PATH [get KEY | set KEY VALUE | rm KEY | mv OLD NEW | copy FROM] [options]",
     "Without an action, all attributes are shown as JSON. `set` takes JSON, and text that is no JSON as\n"
     "text, with a note where that could be a slip; --json-value refuses it. `copy` takes\n"
     "over those of FROM, an array, a group or an array file, in one step; the names of its dimensions are left to\n"
     "`tessera dims`.\n\n"
     "Examples:\n"
     "  tessera attrs grid.zarr set units m\n"
     "  tessera attrs grid.zarr set valid_range '[-500, 9000]'\n"
     "  tessera attrs grid.zarr get units\n"
     "  tessera attrs grid.zarr mv units unit\n"
     "  tessera attrs anomaly.zarr copy grid.zarr",
     declare_attrs},
    {"dims", inspect, "show or set the names of an array's dimensions", "dims PATH [NAMES] [options]",
     "NAMES are separated by commas, one for each dimension; an empty one leaves that dimension without a name.\n"
     "They are a member of v3's metadata, and in the other formats the attribute _ARRAY_DIMENSIONS, where xarray "
     "looks\n"
     "for them.\n\n"
     "Examples:\n"
     "  tessera dims cube.zarr time,y,x\n"
     "  tessera dims cube.zarr",
     declare_dims},
    {"formats", inspect, "the formats, codecs, array files and stores that Tessera knows", "formats [options]",
     "The names for --format and --codec, the extensions of array files, and the kinds of stores that paths lead to.\n"
     "In --json, \"generations\" is the former name of \"formats\": it is deprecated, and will be removed.\n\n"
     "Example:\n"
     "  tessera formats",
     declare_formats},
    {"get", inspect, "print or save a part of an array", "get PATH [SELECTION] [options]",
     "Prints what elements stand for as NumPy does, missing ones as -- (null in --json, nothing in --csv); of more "
     "than\n"
     "1000 elements only the edges, unless --all. --json always prints all. --out decodes for files that keep no\n"
     "attributes, such as .npy.\n\n"
     "Examples:\n"
     "  tessera get grid.zarr '10:20, ::2'\n"
     "  tessera get era5.nc::t2m 'time=2020-01:2020-06, latitude~45'\n"
     "  tessera get stations.zarr --csv\n"
     "  tessera get grid.zarr '..., 5' --out column.npy",
     declare_get},
    {"view", inspect, "look at an array: in the terminal or as PNG", "view PATH [SELECTION] [options]",
     "A slice along two dimensions is a picture, one along one dimension a line, structures and text are a table. "
     "Other\n"
     "dimensions are taken at their middle, unless the selection has an index for them. A slice that does not fit is\n"
     "averaged over whole blocks of elements. Only what the picture takes is read; where averaging would decode more\n"
     "than --limit, single elements are shown, and the picture says so.\n"
     "Elements are shown as what they stand for; --raw shows the codes. Axes have the coordinates of the group or "
     "file, "
     "with\n"
     "north up; red, green and blue along the first or last dimension are colours.\n"
     "Exit code 1 when --chunks finds a damaged chunk.\n\n"
     "Examples:\n"
     "  tessera view dem.zarr\n"
     "  tessera view cube.zarr '5, ...' --axes y,x --range 2%,98%\n"
     "  tessera view dem.zarr --png dem.png --map grey\n"
     "  tessera view dem.zarr --chunks\n"
     "  tessera view stations.zarr ':100'",
     declare_view},
    {"serve", inspect, "show arrays in the browser, and to every program that reads Zarr by HTTP",
     "serve PATH... [--port N] [options]",
     "Prints a URL and serves until Ctrl-C or SIGTERM end it, with exit code 0. Nothing is written anywhere.\n"
     "The URL is that of a page. Below it every array, group and array file is there as Zarr: URL/v2/PATH in format "
     "2,\n"
     "URL/v3/PATH in format 3, whatever its own format; chunks are passed on as they are stored where that format has\n"
     "their codecs. URL/api/tree?path=PATH lists, URL/api/info?path=PATH tells, as JSON.\n"
     "Only programs of this machine reach it, and the URL holds a random token, because the machine may have other\n"
     "users. Pages of other sites read nothing, unless --allow-origin names them. Links below PATH that lead out of "
     "it\n"
     "are not followed without --follow-links. From another machine: ssh -L PORT:127.0.0.1:PORT HOST.\n\n"
     "Examples:\n"
     "  tessera serve survey.zarr --open\n"
     "  tessera serve survey.zarr backup.npz --port 8080 --json\n"
     "  tessera serve survey.zarr --allow-origin https://viewer.example\n"
     "  tessera serve s3://bucket/survey.zarr --cache ~/.cache/tessera/values",
     declare_serve},
    {"mount", inspect, "show arrays as files that any program opens: .npy, .nc and Zarr", "mount PATH DIR [options]",
     "Shows an array or a group in an empty folder until Ctrl-C, SIGTERM or fusermount3 -u DIR ends it: each array as\n"
     "NAME.npy and as NAME.zarr/, and each group as NAME.nc (netCDF-3) with its coordinates and attributes. Nothing "
     "is\n"
     "made in advance: bytes are decoded when they are read, each chunk once within --max-memory. PATH may lie "
     "anywhere,\n"
     "and be of any format. README.txt tells what has no place in these formats, .tessera-errors what could not be "
     "read.\n"
     "Read-only, unless --write. Only this user reads, unless --allow-other. Links out of PATH are not followed "
     "without\n"
     "--follow-links.\n\n"
     "Examples:\n"
     "  tessera mount survey.zarr /mnt/survey &\n"
     "  ncview /mnt/survey/survey.nc\n"
     "  python3 -c 'import numpy; print(numpy.load(\"/mnt/survey/depth.npy\", mmap_mode=\"r\")[:, 5])'\n"
     "  fusermount3 -u /mnt/survey",
     declare_mount},
    {"stats", inspect, "minimum, maximum, mean, NaNs and a histogram", "stats PATH… [options]",
     "One pass over what elements stand for; of structures each field. Missing ones, NaN and NaT are counted and left\n"
     "out of all else, as NumPy's nanmin and its like do; the fill is counted bit for bit. Bins are a power of two "
     "wide. --axis gives a line for "
     "each\n"
     "position along a dimension, still in one pass. --with reads the array once more for each word.\n\n"
     "Examples:\n"
     "  tessera stats grid.zarr\n"
     "  tessera stats grid.zarr --with median,p95\n"
     "  tessera stats cube.zarr --axis 0",
     declare_stats},
    {"diff", inspect, "compare two arrays or hierarchies element by element", "diff A B [options]",
     "Chunks, codecs, format and byte order do not matter; without a tolerance elements are compared\n"
     "bit for bit, by what they stand for: packed numbers as unpacked, times as moments, missing ones as equal "
     "(--raw:\n"
     "the codes). Of two packings the values are equal within rounding; where only the codes differ, a line says so.\n"
     "Lists the first elements that differ (index, A's, B's) and the largest difference. Of two groups\n"
     "everything below them is compared by its path, attributes too. Arrays whose chunk files are the same, as those\n"
     "of a snapshot are until they change, are not read. --sums compares two sealed copies by their seals alone.\n"
     "Exit code 0 when there is no difference, 1 when there is one.\n\n"
     "Example:\n"
     "  tessera diff grid.zarr backup.npz::grid --rtol 1e-6\n"
     "  tessera diff survey.zarr survey.zarr.snapshots/before-cleaning",
     declare_diff},
    {"digest", inspect, "one hash of the content of an array or a group", "digest PATH… [options]",
     "Arrays of equal dtype (byte order apart), shape and elements have equal digests, whatever their chunks, codecs\n"
     "and format. tools/docs/formats.md says how it is computed. The digest of a group, or of a file of several "
     "arrays,\n"
     "is a hash of the paths and digests of all arrays below. One failure does not stop the rest. --dandi and --each\n"
     "sum the files as they lie there, of an array or of all below a group, without Tessera's own.\n\n"
     "Example:\n"
     "  tessera digest grid.zarr backup.npz::grid\n"
     "  tessera digest --dandi scan.zarr\n"
     "  tessera digest --each grid.zarr > sums.txt; sha256sum -c sums.txt",
     declare_digest},
    {"find", inspect, "where elements meet a condition", "find PATH CONDITION [options]",
     "Elements are what they stand for (--raw: the codes); missing ones and NaN meet no comparison but !=, as in "
     "NumPy. Each line has the "
     "index,\n"
     "the coordinates that the dimensions have, and the value. Of an array with an index (tessera index), chunks are "
     "not\n"
     "read in which no element can match, for comparisons with numbers, also several joined by &.\n\n"
     "Examples:\n"
     "  tessera find dem.zarr 'value > 700'\n"
     "  tessera find era5.nc::t2m '(value < 230) & (value > 220)' --sel 'time=2020-01' --csv\n"
     "  tessera find grid.zarr 'isnan(value)' --out indices.npy",
     declare_find},
    {"index", inspect, "note what each chunk amounts to, so that stats reads only what changed",
     "index PATH… [options]",
     "Reads the stored chunks of arrays of real numbers and times once, and keeps the extremes, mean and so on of each "
     "in\n"
     ".tessera/index, beside size, inode and times of the chunk's file. An entry counts only while these are the same, "
     "so\n"
     "whoever changes chunks need not know of it; run again, it reads what changed. Not in sealed arrays, in those of\n"
     "another user, and where file systems do not tell times to the nanosecond.\n\n"
     "Example:\n"
     "  tessera index grid.zarr && tessera stats grid.zarr",
     declare_index, true},
    {"advise", inspect, "which chunks, shards and codec suit an array and how it is read",
     "advise PATH [--reads PATTERNS] [options]",
     "Reads a part in the middle of the array, 16 MiB at most, writes it to memory in several layouts, and reckons "
     "what "
     "the\n"
     "whole array would take: bytes, and seconds of one processor to write it and for each way of reading, among them "
     "what\n"
     "opening a value took where the array lies. The best layout comes first: the least sum of size, the time to read "
     "once\n"
     "in each way, and a quarter of the time to write, each relative to the least that was found. A way that is named "
     "twice\n"
     "counts twice. What compresses otherwise elsewhere in the array is not seen.\n\n"
     "Example:\n"
     "  tessera advise t.zarr --reads 'time=1; lat=1,lon=1'",
     declare_advise},
    {"import", move, "an array file becomes an array", "import FILE PATH [options]",
     "FILE is .npy, .npz, .npz::member, .ra, .mldf, .mldf::field, .nc, .h5, .tif, .grib2, .safetensors, .csv or\n"
     ".png; - or <(COMMAND) is a pipe, which holds a .npy, or with --as csv text. A file of several arrays becomes "
     "one\n"
     "array each, PATH/member. One that holds a single array becomes PATH itself, as the array that a person names;\n"
     "PATH/NAME puts it where one of several would be. The dtype of a .csv is found out, unless --dtype gives it; with "
     "a\n"
     "header it becomes a structure of its columns.\n"
     "Without --format they take the format of the group around PATH, and are zmeta where there is none.\n"
     "What is not finished never opens as an array; with --overwrite the old one stays until the new one is complete.\n"
     "\n"
     "Example:\n"
     "  tessera import elevation.npz::elevation elevation.zarr --chunks 128,128",
     declare_import},
    {"export", move, "an array becomes an array file", "export PATH FILE [options]",
     "FILE - is a pipe: a .npy, or with --as csv text. Otherwise its extension says the format: .npy, .npz (one\n"
     "member, arr_0, or FILE.npz::name), .ra, .mldf (one field, data, or FILE.mldf::name), .nc, .h5, .tif,\n"
     ".safetensors, .csv or .png. A group becomes one .npz, .mldf, .nc, .h5, .tif or .safetensors of its arrays. "
     "Arrays\n"
     "that cannot be read are named and left out, and the command ends with 1; with --overwrite such a file is put\n"
     "beside what is there, unless --skip-bad accepts it.\n\n"
     "Examples:\n"
     "  tessera export elevation.zarr elevation.npy --sel '0:100, :'\n"
     "  tessera export measurements measurements.npz",
     declare_export},
    {"copy", move, "copy between arrays and array files", "copy SRC DST [options]",
     "DST is a directory unless it ends in .zip, .ozx, .npy, .npz, .ra, .mldf, .nc, .h5, .tif, .safetensors, .csv or\n"
     ".png.\n"
     "What is not given is taken from SRC: a copied\n"
     "array keeps chunks, codec, fill value, attributes and unknown metadata, and so what its codes stand for. Files "
     "that\n"
     "keep no attributes (.npy, .npz, .ra …) get the codes, with a note; --decode-cf copies what they stand for. "
     "--where "
     "and\n"
     "--fill speak of that, too; --dtype and --keep-bits of what is stored. A group is copied with all that is "
     "below\n"
     "it; --sel takes a part of all its arrays, by the names of dimensions. --format makes another Zarr format of it: "
     "codecs stay where that format has them, else the nearest\n"
     "are chosen, and each change is named. Chunk files that stay valid are copied as they are, or linked (--link),\n"
     "without a look at their elements, unless --verify is given; --dry-run tells which, and why not the others. Of a "
     "group, arrays that cannot be read are named and\n"
     "left out, and the command ends with 1; with --overwrite such a copy is put beside what is there, unless\n"
     "--skip-bad accepts it. Without --format the copy takes the format of the group around DST, else SRC's.\n\n"
     "Examples:\n"
     "  tessera copy grid.zarr smaller.zarr --sel '::10, ::10' --codec blosc:zstd:9:bitshuffle\n"
     "  tessera copy model.nc europe.zarr --sel 'time=2020, lat=35:70, lon=-10:40'\n"
     "  tessera copy old.zarr new.zarr --format v3 --dry-run\n"
     "  tessera copy grid.zarr sharded.zarr --format v3 --chunks 64,64 --shard 1024,1024\n"
     "  tessera copy survey.zarr tapes --package 10G --parity 10%",
     declare_copy},
    {"rechunk", move, "copy an array with other chunks", "rechunk SRC DST --chunks SHAPE [options]",
     "This is `copy` under the name that people look for. SRC and DST may be the same with --overwrite.\n\n"
     "Example:\n"
     "  tessera rechunk grid.zarr columns.zarr --chunks 1000000,1 --max-memory 2G",
     declare_rechunk},
    {"sync", move, "make a copy like its source again, by carrying what differs",
     "sync SRC DST [--dry-run] [--all] [options]",
     "Each array at and below DST that is also at SRC becomes equal to it: chunks as they are stored, shape, "
     "attributes.\n"
     "Chunks differ if their sizes do, or their MD5 sums, which S3 lists; where neither side lists one, bytes are\n"
     "compared: on local file systems once, as long as both files keep size, inode and times (--all: always). What "
     "DST\n"
     "lacks is copied; chunks that SRC lacks are erased; nodes that only DST has stay. An array that is stored "
     "otherwise\n"
     "(format, chunks, codecs) is refused: `copy` makes it anew. A seal is not broken. Run it again after an "
     "interruption.\n"
     "`undo` cannot take it back.\n\n"
     "Examples:\n"
     "  tessera sync s3://bucket/survey.zarr survey.zarr\n"
     "  tessera sync survey.zarr backup.zarr --dry-run",
     declare_sync},
    {"refs", move, "where chunks lie, for programs that read them in place",
     "refs PATH [--out FILE] [--skip-bad] [options]",
     "Writes kerchunk's references (version 1): JSON that says in which bytes of which files chunks lie, so that "
     "other\n"
     "programs open PATH as a Zarr v2 store without copying it (fsspec's reference file system). Of directories, "
     ".npy,\n"
     "plain .ra, stored .npz, and chunks of .h5 and .tif; what is compressed as a whole, or by codecs that v2 lacks, "
     "is an error. Absolute "
     "paths\n"
     "or URLs are written; when chunks are written, added or removed, the references have to be written anew.\n\n"
     "Examples:\n"
     "  tessera refs elevation.npz --out refs.json\n"
     "  python3 -c \"import fsspec, zarr; print(zarr.open(fsspec.get_mapper('reference://', fo='refs.json')).tree())\"",
     declare_refs},
    {"stack", move, "many files become one array, one above the other", "stack FILES… DST [--axis N] [options]",
     "FILES are arrays or array files of one shape and dtype, or a quoted pattern of such, or a file of several "
     "arrays.\n"
     "They become the steps of a new axis, as numpy.stack makes it. What a pattern stands for comes in natural order\n"
     "(frame-2 before frame-10), and so do names in the order of a shell's pattern; names in any other order keep it.\n"
     "Files whose length along the axis is already 1 are joined there, unless --new-axis asks for a further axis.\n"
     "All are looked at before anything is written; DST is as in `copy`, and FILES stay as they are. --resume "
     "continues\n"
     "an unfinished stack. If DST is an array like FILES, the destination was probably forgotten: the command is\n"
     "refused, even with --overwrite. Attributes come from the first file: numbers that others pack, mark or count in "
     "another\n"
     "way become codes of its kind where that loses nothing, else the file is refused, as it is for other units, or "
     "another\n"
     "place on the earth; --decode-cf joins what they stand for. --virtual copies nothing: DST.json says in which "
     "bytes\n"
     "of the files the chunks lie, and is read like an array as long as the files stay where they are.\n\n"
     "Examples:\n"
     "  tessera stack 'frames/frame-*.npy' movie.zarr --chunks 16,217,181\n"
     "  tessera stack red.npy green.npy blue.npy rgb.npy --axis 2\n"
     "  tessera stack 'frames/*.npy' movie.refs.json --virtual",
     declare_stack},
    {"unstack", move, "one array becomes a file for each step along an axis", "unstack SRC DST [--axis N] [options]",
     "DST has {} where the number goes: 'frames/frame-{}.npy'. Numbers begin with 0 and have as many digits as the\n"
     "largest takes. The name's end says what is made, as in `copy`. Nothing is replaced without --overwrite, and "
     "files\n"
     "of a run that failed are removed, unless --resume is to go on with them: it keeps those that hold their step, "
     "and\n"
     "refuses others. `stack` makes the same array of them again.\n\n"
     "Example:\n"
     "  tessera unstack movie.zarr 'frames/frame-{}.npy'",
     declare_unstack},
    {"concat", move, "many files become one array, one after the other", "concat FILES… DST [--axis N] [options]",
     "As `stack`, but along an axis that the files have, as numpy.concatenate takes them: their other lengths must\n"
     "agree.\n\n"
     "Example:\n"
     "  tessera concat 'tiles/row0-*.npy' row0.zarr --axis 1",
     declare_concat},
    {"calc", compute, "arithmetic and masks over arrays", "calc OUT EXPRESSION NAME=PATH… [options]",
     "Operators: + - * / // % ** == != < <= > >= & | ^ ~ << >>, as in NumPy (before a first "
     "- a space). Functions: where, minimum, maximum, "
     "fmin,\n"
     "fmax, clip, abs, sign, square, sqrt, cbrt, exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, arctan,\n"
     "arctan2, tanh, hypot, floor, ceil, trunc, rint, isnan, isinf, isfinite, real, imag, conj, mod, and conversions "
     "by\n"
     "the name of a dtype: float32(a). Constants: pi, e, nan, inf, True, False.\n"
     "Operands are broadcast by the names of their dimensions (without names: by position), and dtypes promoted as in\n"
     "NumPy 2: float32 stays float32 beside numbers. Integers wrap;\n"
     "int64 beside uint64, and numbers that do not fit, are refused.\n"
     "Datetimes and timedeltas: + and - of them, comparisons, minimum, maximum, fmin, fmax, clip, where, isnat, NaT, "
     "and\n"
     "datetime64('2020-01-31'), timedelta64(5, 'D'), in the largest unit that divides both. All else is refused.\n"
     "Text is compared with text between quotes: station == 'Graz'.\n"
     "What `reduce` computes stands in it, too, with names of dimensions or parts of time, and is broadcast back:\n"
     "mean(t, time), p95(t, by=season), t - mean(t, by=month), (t - mean(t, time)) / std(t, time). Missing elements "
     "are\n"
     "left out there. Words of by= are those of `reduce --by`, but month is month-of-year; year-month is each month "
     "of\n"
     "each year in both. Such a part is computed once, and kept in memory or in a temporary file.\n"
     "Operands are what their elements stand for: unpacked, with NaN for missing ones, and times as datetimes; --raw "
     "gives\n"
     "the codes. With --in-place the value is packed as OUT is, halves to even, and refused where it does not fit.\n"
     "The result is made as `copy` makes one. With --in-place, OUT is changed as one batch, which `undo` takes "
     "back.\n\n"
     "Examples:\n"
     "  tessera calc out.zarr 'where(a < 0, 0, a * 0.1 + b)' a=x.zarr b=y.npy\n"
     "  tessera calc anomalies.zarr 't - mean(t, by=month)' t=era5.nc::t2m\n"
     "  tessera calc x.zarr 'where(isnan(x), 0, x)' x=x.zarr --in-place --sel ':100'",
     declare_calc},
    {"reduce", compute, "minimum, mean, median … along dimensions", "reduce SRC DST --with WORD [options]",
     "Elements count as what they stand for: packed numbers (scale_factor, add_offset, _Unsigned) are unpacked, and "
     "missing\n"
     "ones (_FillValue, missing_value, nodata, NaN and NaT) left out; a result of nothing else is missing, and its "
     "count "
     "0.\n"
     "--raw computes with the codes. std and var have N as divisor. Sums of integers\n"
     "are 64-bit integers, means of them float64. argmin and argmax give indices along the reduced dimensions. any and "
     "all\n"
     "say whether elements are not zero; NaN is not. Percentiles are NumPy's linear ones, and exact within "
     "--max-memory.\n"
     "With --by, the dimension of --axis, or else the only one with times, gets an index for each group, whose labels\n"
     "are the attribute group_labels: month (or year-month) is each month of each year, without gaps; the others that "
     "occur, "
     "sorted.\n"
     "--weights area are areas of cells between bounds, or half-way between neighbours, with great circles between "
     "their\n"
     "corners (CDO's fldmean). Missing elements have no weight. A path without extension begins with ./\n"
     "With --rolling, as xarray's: a window that is not complete is missing, unless --min-count allows it.\n\n"
     "Examples:\n"
     "  tessera reduce series.zarr mean.zarr --axis 0 --with mean\n"
     "  tessera reduce era5.nc::t2m monthly.zarr --by month --with p95\n"
     "  tessera reduce era5.nc::t2m earth.npy --axis latitude,longitude --with mean --weights area\n"
     "  tessera reduce era5.nc::t2m smooth.zarr --rolling time=30 --with mean",
     declare_reduce},
    {"coarsen", compute, "downsample by whole factors", "coarsen SRC DST --by FACTORS [options]",
     "One element for each block of the source, of its dtype; blocks at the ends hold what is left. Means of integers "
     "are\n"
     "rounded half to even. mode is the most frequent element, the least of equally frequent ones; nearest the first\n"
     "element of each block. Packed and missing elements are taken as `reduce` takes them; what is packed becomes "
     "float64.\n\n"
     "Example:\n"
     "  tessera coarsen dem.zarr overview.npy --by 4,4 --with mean",
     declare_coarsen},
    {"regrid", compute, "interpolate to other latitudes and longitudes",
     "regrid SRC DST --like GRID | --to RANGES [options]",
     "Both grids are regular: one dimension has latitudes, another longitudes, as coordinates beside the array. Those "
     "that\n"
     "run once around the earth go on across their ends. Missing elements are as in CDO: bilinear (remapbil) needs all "
     "four\n"
     "neighbours, and beyond the last latitudes takes the nearest four; nearest (remapnn) keeps the dtype; "
     "conservative\n"
     "(remapcon, first order) is the mean by areas in common of cells that are there. Cells end half-way between\n"
     "neighbours, or where the coordinate's bounds say. Of a group or a file of several arrays each that has both is\n"
     "interpolated; bounds, areas and coordinates of two dimensions are left out. DST in a group gets its coordinates\n"
     "beside it.\n\n"
     "Examples:\n"
     "  tessera regrid era5.nc::t2m coarse.zarr/t2m --to lat=-90:90:1,lon=0:359:1\n"
     "  tessera regrid rain.nc same.nc --like model.nc --method conservative",
     declare_regrid},
    {"pyramid", compute, "an OME-Zarr or GeoZarr image with its overviews", "pyramid SRC DST [options]",
     "A group with the levels 0, 1, 2 … and OME-NGFF multiscales metadata: 0.5 in v3, 0.4 in v2, or --ome. Each level\n"
     "is computed from SRC itself. An image of 0.4 is upgraded in two steps: copy it with --format v3, then "
     "--upgrade.\n"
     " Without --axes the names of the dimensions count, else y,x, z,y,x, c,z,y,x or t,c,z,y,x.\n"
     "With --geo the group and its levels have the metadata of GeoZarr (v0.1): where each level lies on the earth.\n\n"
     "Examples:\n"
     "  tessera pyramid dem.zarr dem.ome.zarr --by 2 --scale 30,30 --units meter,meter\n"
     "  tessera pyramid dem.tif dem.zarr --geo",
     declare_pyramid},
    {"plan", share, "divide a copy or computation into units for many processes",
     "plan COMMAND … --out JOB.json [--parts N] [options]",
     "COMMAND is copy, rechunk, stack, concat, calc, reduce, coarsen, regrid or pyramid, with its arguments and\n"
     "options. The target is begun, and JOB.json says what is to be done. A unit is some whole chunks or shards of the "
     "target: no "
     "two\n"
     "units share a file, so that no locks between machines are needed. --max-memory is that of each process.\n\n"
     "Example:\n"
     "  tessera plan rechunk era5.zarr by-place.zarr --chunks 8760,16,16 --out job.json --parts 100",
     declare_plan},
    {"work", share, "do units of a job", "work JOB.json [--part I/N | --part auto | --units 3-7,9 | --claim] [options]",
     "Without one of these, everything that is left. Any number of processes may work at once, and a unit that is done "
     "is\n"
     "not done again: repeat what failed. --part I/N are neighbouring units; I counts from 0. --part auto takes I from "
     "the\n"
     "scheduler: SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, PBS_ARRAY_INDEX, LSB_JOBINDEX or SGE_TASK_ID (the last "
     "two\n"
     "less 1), with N from the job, and OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID with their numbers of "
     "processes.\n"
     "--claim takes what nobody else is doing.\n"
     "SIGTERM and SIGUSR1 end the work after the unit; a second one, or --grace, ends it at once.\n"
     "Exit code 2 when units failed, 75 when it was asked to end early: start it again.\n\n"
     "Example:\n"
     "  tessera work job.json --part auto",
     declare_work},
    {"finish", share, "compare all units of a job with their records, and open the target", "finish JOB.json [options]",
     "Call it when all workers have ended. Nothing opens as an array before. What is missing is named as parts or "
     "units\n"
     "for `work`, and nothing is changed then. A source that was changed since the job was planned is refused.\n"
     "Exit code 1 when units are missing, 2 when some of them failed.\n\n"
     "Example:\n"
     "  tessera finish job.json",
     declare_finish},
    {"job", share, "how far a job is", "job JOB.json [options]",
     "By the records of its workers: what is done, how fast, when it will be complete, and what failed.\n"
     "Exit code 1 while units are missing, 2 when some of them failed.\n\n"
     "Example:\n"
     "  tessera job job.json",
     declare_job},
    {"set", edit, "write a value or a file into a part of an array", "set PATH SELECTION VALUE|FILE [options]",
     "Values are what elements stand for, and are packed as the array's are; null or NaN is a missing one. --raw sets\n"
     "codes. VALUE is JSON (3, -1.5, NaN, true, \"text\"; [1, 2] for a complex number or a structure), or plain text "
     "for "
     "text\n"
     "and times. FILE is an array file of the selection's shape: an existing .npy or .npz, FILE.npz::member, or "
     "@FILE.\n"
     "Put -- before a value that begins with a minus and a letter or a point: -- -Infinity.\n\n"
     "Examples:\n"
     "  tessera set grid.zarr '0:10, 0:10' 7\n"
     "  tessera set grid.zarr '5, ...' row.npy",
     declare_set},
    {"append", edit, "write an array file after the end", "append PATH FILE [--axis DIM] [options]",
     "FILE is anything that `copy` takes as SRC; its other lengths must be the array's. A file of one dimension less "
     "is\n"
     "one step along the axis: a 217×181 frame after N×217×181. A file of another dtype is refused, unless --cast "
     "says\n"
     "what may become of its values: --cast same_kind rounds float64 to float32, --cast round also takes 1.5 to int.\n"
     "The data are written first and the shape last: what fails leaves the array as it was.\n"
     "In a group, all arrays that have the dimension grow by those of the same names in another group or file, or "
     "none\n"
     "does. What would give the values another meaning is refused; times in other units are counted as those there.\n\n"
     "Examples:\n"
     "  tessera append series.zarr today.npy --axis 0\n"
     "  tessera append model.zarr february.nc --axis time",
     declare_append},
    {"resize", edit, "grow or shrink an array", "resize PATH SHAPE [options]",
     "New elements read as the fill value. Chunks outside a smaller shape are deleted.\n\n"
     "Example:\n"
     "  tessera resize grid.zarr 2000000,1000",
     declare_resize},
    {"edit", edit, "many edits of an array or of several arrays of a group, all or nothing",
     "edit PATH --script FILE [options]",
     "Each line of FILE is one edit; words are split as in a shell, # begins a comment:\n"
     "  set SELECTION VALUE|FILE [raw]\n"
     "  append FILE [AXIS]\n"
     "  resize SHAPE\n"
     "  attr KEY JSON\n"
     "  unattr KEY\n"
     "If PATH is a group, the line\n"
     "  array NAME\n"
     "names the array below it that the lines after it change.\n"
     "All take effect together at the end, or, whatever fails or crashes, none. Other programs that write to the "
     "array\n"
     "(or to any array of the group) wait meanwhile. The old values stay in .tessera/undo, as hard links, for `tessera "
     "undo`.\n"
     "Exit code 3: the edits are recorded and take effect, though something keeps them from being in place yet; they\n"
     "must not be repeated.\n\n"
     "Example:\n"
     "  printf \"set '0:10, :' 7\\nattr reviewed true\\n\" | tessera edit grid.zarr --script -",
     declare_edit},
    {"undo", edit, "take back the last change of an array or a group", "undo PATH [options]",
     "Takes back the last `edit`, `calc --in-place`, `set`, `append`, `resize`, `attrs` or `dims`. A second undo "
     "makes\n"
     "that change again. Of an interrupted command, the part that was done is taken back. undo is refused if anything\n"
     "that the command wrote has changed since. Old values are hard links in the array's .tessera/undo, kept until "
     "its\n"
     "next change; `info` says what room they take, and --no-undo of these commands keeps none. Of a group, `edit`\n"
     "and `attrs` are taken back. There is no undo without hard links, in an archive, or of changes by other\n"
     "programs.\n\n"
     "Example:\n"
     "  tessera undo grid.zarr",
     declare_undo},
    {"log", edit, "who changed what, and when", "log PATH [options]",
     "A line for each command that changed PATH or an array or group below it: the time (UTC), the user and the host, "
     "and\n"
     "its words. It is plain text in `.tessera/log`; commands write it, programs with the library do not. --no-log\n"
     "leaves a command out. A log is for people and no proof: whoever may write the array may write it, too.\n"
     "What was removed, and archives and array files, are noted in the group that they lie in, if it has metadata. "
     "Not\n"
     "noted are those that lie elsewhere, what `mv` takes out of a group, bags, and what other programs do.\n\n"
     "Example:\n"
     "  tessera log survey.zarr",
     declare_log, true},
    {"snapshot", edit, "keep what is there now, and put it back",
     "snapshot PATH create|list|restore|accept|rm NAME [options]",
     "A snapshot of an array, or of a group with all below it, is a plain Zarr store, PATH.snapshots/NAME; of what "
     "lies\n"
     "in a group, beside the outermost group: ROOT.snapshots/NAME. Chunk files are reflinks where the file system has\n"
     "them, else hard links, else copies. Writers wait meanwhile, so that it shows one moment.\n"
     "`restore` puts the snapshot in the place of all that is there now, in one step; PATH may be a part of what the\n"
     "snapshot was made of, or gone. Programs that have it open must open it again.\n"
     "Sizes and times of the files are recorded, so that `verify` and `restore` notice files that other programs "
     "changed\n"
     "in place. With --sums they compare every file with its SHA-256 too, which shows a flipped bit. A copy without "
     "the\n"
     "times (cp -r) can be checked by sums only: those of --sums, or of a seal. Without sums `accept` takes the files "
     "as\n"
     "they are. `restore` changes nothing when a file is not as it was, and names it; `restore --skip-damaged` "
     "restores "
     "the\n"
     "others.\n\n"
     "Examples:\n"
     "  tessera snapshot survey.zarr create before-cleaning\n"
     "  tessera diff survey.zarr/depth survey.zarr.snapshots/before-cleaning/depth\n"
     "  tessera snapshot survey.zarr/depth restore before-cleaning",
     declare_snapshot, true},
    {"group", arrange, "make a group, which holds arrays and groups", "group PATH [options]",
     "Groups between PATH and a group further above are made too. The format is that of the group above, else of\n"
     "what PATH holds already, else v3; zmeta and v1 have no groups but plain directories.\n\n"
     "Examples:\n"
     "  tessera group survey.zarr --attrs '{\"title\": \"Survey\"}'\n"
     "  tessera group survey.zarr/2026/soundings",
     declare_group},
    {"mv", arrange, "move or rename an array or a group", "mv SRC DST [options]",
     "DST is the new path itself, where nothing may be yet. Both are on one file system.\n\n"
     "Example:\n"
     "  tessera mv survey.zarr/draft survey.zarr/2026/final",
     declare_mv},
    {"rm", arrange, "remove an array, a group or an unfinished copy", "rm PATH [options]",
     "Removes without asking. Anything else, and what holds files that are no part of it, is left alone. Of links "
     "below\n"
     "PATH only the links are removed; PATH itself must not be one. --force also removes what has broken metadata, or "
     "an\n"
     "array of Tessera's that has lost them, if all names in it are such as arrays have.\n\n"
     "Example:\n"
     "  tessera rm survey.zarr/2025 --recursive",
     declare_rm},
    {"consolidate", arrange, "copy the metadata of everything below a group into one document",
     "consolidate PATH [--check] [options]",
     "Other programs open a hierarchy by this copy without looking at each node. Tessera itself always reads the\n"
     "nodes, so that a stale copy only misleads others; its commands say when a copy becomes stale.\n"
     "Exit code 1 when --check finds that the copy is stale.\n\n"
     "Example:\n"
     "  tessera consolidate survey.zarr",
     declare_consolidate},
    {"verify", check, "find what is damaged or left over",
     "verify PATH… [--complete | --ome | --geo] [--verbose] [options]",
     "Decodes every chunk, parses all metadata, compares with the seal where there is one, a BagIt bag with the "
     "sums\n"
     "in its manifests, and names files that belong to nothing. One line for each finding, and for many that are\n"
     "alike (--verbose: one each):\n"
     "  damage     cannot be decoded, or is not what it must be\n"
     "  changed    a file that is not as it was sealed: damage, or somebody's edit\n"
     "  lost       a file that was sealed and is missing\n"
     "  added      a file that was not there when the seal was made\n"
     "  unchecked  cannot be judged: a codec that Tessera lacks, a chunk larger than --max-memory, a file that cannot "
     "be\n"
     "             read, which repair leaves alone\n"
     "  leftover   of a crash or another program; nothing that is read depends on it\n"
     "  note       worth knowing\n"
     "  absent     a chunk that is not stored, though it was when the array was imported, copied or restored, and no\n"
     "             command of Tessera erased it since. If another program erased it on purpose, remove\n"
     "             .tessera/stored, the record of these chunks; without it a note says that they are not known\n"
     "Other chunks that are not stored read as the fill value and are counted; with --complete each of them is "
     "absent.\n"
     "Exit code 0 if there are only leftovers and notes, 1 for any other finding.\n"
     "With --ome only the metadata of OME-Zarr are held against their specification (0.4, 0.5, 0.6rc0), in every group "
     "at\n"
     "and below PATH: images, labels, plates, wells and scenes, and the nodes that they name. What it recommends is a\n"
     "note. With --geo the same is done for those of GeoZarr (v0.1), in arrays and groups.\n\n"
     "Examples:\n"
     "  tessera verify survey.zarr\n"
     "  tessera verify --ome image.ome.zarr\n"
     "  tessera verify backup.npz --json\n"
     "  tessera verify *.zarr --due 90d --record --summary --rate 50M --nice",
     declare_verify},
    {"repair", check, "mend what can be mended",
     "repair PATH [--dry-run] [--give-up-batches] [--drop-damaged] [options]",
     "Damaged chunks, and chunks outside their array, are set aside in .tessera/damaged of the array, and then read "
     "as\n"
     "the fill value; of a shard only the damaged chunks are lost. No data are deleted without\n"
     "--drop-damaged, which deletes the files that this run and those before have set aside. Leftovers of killed "
     "writers are\n"
     "removed: a temporary file once no process of this machine has its writer's number, or after an hour without a\n"
     "change. Stale consolidated metadata are written anew. Each array is mended under its lock. A batch of edits that "
     "is\n"
     "recorded but not in place is finished; with --give-up-batches it is taken back, where all old values are known.\n"
     "One of which a new value is lost or was changed is left, until --give-up-batches takes it back. Where old values "
     "that\n"
     "this needs are lost, too, it is set aside, its changes in place stay, and that counts as damage.\n"
     "One whose journal is damaged is set aside in .tessera/damaged.\n"
     "Links, pipes and sockets in the places of Tessera's own files are removed; what a link leads to stays. Where "
     "damage\n"
     "lies behind a link below PATH nothing is mended, unless --follow-links allows it. Nothing but its parity mends "
     "what\n"
     "lies in a BagIt bag.\n"
     "Exit code 1 when damage is left, and when elements read as the fill value because nothing could restore them.\n\n"
     "Examples:\n"
     "  tessera repair survey.zarr --dry-run\n"
     "  tessera repair survey.zarr",
     declare_repair},
    {"seal", check, "write a manifest of checksums, or make a BagIt bag or a version of an OCFL object",
     "seal PATH [--parity 5%] [--readme] [--sign KEY] [--overwrite | --accept NAMES | --bagit DIR | --ocfl ROOT --id "
     "ID] [options]",
     "Verifies, then writes .tessera/sha256sums.txt with the SHA-256 of every file. `tessera verify` compares with "
     "it,\n"
     "and so does `cd PATH && sha256sum -c .tessera/sha256sums.txt`. From then on no command changes what is there\n"
     "without --break-seal. Sealing again seals what was written since then, and refuses what changed otherwise; with\n"
     "parity it reads only what changed. Writers wait while it works, and it waits for them. A bag (RFC 8493) is a\n"
     "directory with a copy and the checksums, for archives; --info says whose it is and what.\n"
     "With --ocfl ROOT --id ID it becomes the next version of an object of OCFL 1.1, which stores what has changed. "
     "Each\n"
     "version is read in place as ocfl:ROOT::ID@v2; `tessera verify ROOT` checks all objects.\n"
     "Exit code 1, and nothing is sealed, when there is damage.\n\n"
     "Examples:\n"
     "  tessera seal survey.zarr\n"
     "  tessera seal survey.zarr --readme --sign ~/.ssh/id_ed25519\n"
     "  tessera seal survey.zarr --bagit survey-bag\n"
     "  tessera seal survey.zarr --ocfl archive --id urn:example:survey\n"
     "  tessera info ocfl:archive::urn:example:survey@v1",
     declare_seal},
    {"cache", arrange, "list, remove or check what is kept of places over the network",
     "cache ls|rm|verify [PATH] [--cache DIR] [options]",
     "The folder is that of --cache or TESSERA_CACHE. PATH, such as s3://bucket/a.zarr, takes what is at and below "
     "it.\n"
     "`ls` lists entries: their sizes on the disk, what of the value they hold, and where it is from. `rm` removes "
     "them.\n"
     "`verify` reads them all and removes damaged ones; then the exit code is 1. A damaged entry is never an "
     "answer.\n\n"
     "Examples:\n"
     "  tessera cache ls\n"
     "  tessera cache rm s3://bucket/a.zarr --cache ~/.cache/tessera/values",
     declare_cache},
    {"bug-report", inspect, "what whoever mends a fault wants to know of this machine", "bug-report [PATH…] [options]",
     "Versions, libraries, system, settings and the file systems of the places named. Of variables of the environment\n"
     "only the names are told, and no secret in a URL. `python -m tessera bug-report` tells the module's, too.\n\n"
     "Example:\n"
     "  tessera bug-report grid.zarr",
     declare_bug_report, true},
};

}  // namespace

std::span<const Command> commands() {
    return table;
}

}  // namespace tessera::cli
