"""The jobs of a scientist's day and week on a data set, each in one command of the program beside CDO, NCO and xarray with
dask, where they are installed: `jobs.py --day`. Results are compared; times are ratios within this run, below 1 where the
program is faster."""
import glob
import os
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np

STEPS = 730  # days of two years


def write_sources(mib):
    """Two years of days of packed and plain variables, as two files, and as a file for each month."""
    import xarray as xr
    rows = max(12, int((mib * 2**20 / STEPS / 12 / 2) ** 0.5) // 12 * 12)
    lat, lon = np.linspace(90 - 90 / rows, -90 + 90 / rows, rows), np.arange(2 * rows) * 180 / rows
    random = np.random.default_rng(56)
    times = np.datetime64("2001-01-01") + np.arange(STEPS)
    season = 10 * np.sin(np.arange(STEPS) * 2 * np.pi / 365)[:, None, None]
    fields = {name: (("time", "lat", "lon"), (base + season + 3 * random.normal(size=(STEPS, rows, 2 * rows))).astype("f4"),
                     {"units": units}) for name, base, units in (("t2m", 285, "K"), ("u", 3, "m s-1"), ("v", 0, "m s-1"))}
    ends = times[:, None].astype("M8[ns]") + np.arange(2) * np.timedelta64(1, "D")
    data = xr.Dataset({**fields, "time_bnds": (("time", "bnds"), ends)},
                      {"time": ("time", times.astype("M8[ns]"), {"bounds": "time_bnds", "standard_name": "time"}),
                       "lat": ("lat", lat, {"units": "degrees_north", "standard_name": "latitude"}),
                       "lon": ("lon", lon, {"units": "degrees_east", "standard_name": "longitude"})})
    packed = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 285.0, "_FillValue": -32768},
              "time": {"units": "days since 2001-01-01", "calendar": "standard", "dtype": "f8"}}
    for name in "lat", "lon", "u", "v":
        packed[name] = {"_FillValue": None}
    data.to_netcdf("d.nc", encoding=packed, unlimited_dims=["time"])
    data.assign(t2m=data.t2m + 1).to_netcdf("e.nc", encoding=packed, unlimited_dims=["time"])
    for month, part in data.resample(time="MS"):
        part.to_netcdf(f"m-{str(month)[:7]}.nc", encoding=packed, unlimited_dims=["time"])
    data.isel(time=slice(0, 31)).to_netcdf("january.nc", encoding=packed, unlimited_dims=["time"])
    degrees = 180 / rows * 1.5
    with open("grid.txt", "w") as file:
        count = int(360 / degrees)
        file.write(f"gridtype=lonlat\nxsize={count}\nysize={count // 2}\nxfirst=0\nxinc={degrees}\n"
                   f"yfirst={-90 + degrees / 2}\nyinc={degrees}\n")
    return f"lat={-90 + degrees / 2}:{-90 + degrees * (count // 2 - 0.5)}:{degrees},lon=0:{(count - 1) * degrees}:{degrees}"


# Each: what is done; the program's words, where {} is the result; a command of CDO or NCO, with the same; what xarray does
# with the opened data set; the variables that are compared, or none for what is only timed.
def day(grid):
    all_of_them = ["t2m", "u", "v"]
    box, part = "lat=30:60, lon=10:40", {"lat": slice(60, 30), "lon": slice(10, 40)}
    return [
        ("mean over time", "reduce d.nc {} --with mean --axis time", "cdo timmean d.nc {}", lambda d: d.mean("time"), all_of_them),
        ("the same, NCO", "reduce d.nc {} --with mean --axis time", "ncra -O d.nc {}", None, ["u", "v"]),
        ("means of months", "reduce d.nc {} --with mean --by month", "cdo monmean d.nc {}", lambda d: d.resample(time="MS").mean(), all_of_them),
        ("climate of months", "reduce d.nc {} --with mean --by month-of-year", "cdo ymonmean d.nc {}", lambda d: d.groupby("time.month").mean(), all_of_them),
        ("means of seasons", "reduce d.nc {} --with mean --by season", None, lambda d: d.groupby("time.season").mean(), all_of_them),
        ("maximum of years", "reduce d.nc {} --with max --by year", "cdo yearmax d.nc {}", lambda d: d.groupby("time.year").max(), all_of_them),
        ("anomaly by month", "calc {} t-mean(t,by=month-of-year) t=d.nc", "cdo ymonsub d.nc -ymonmean d.nc {}",
         lambda d: d.groupby("time.month") - d.groupby("time.month").mean(), all_of_them),
        ("standardised", "calc {} (t-mean(t,time))/std(t,time) t=d.nc", "cdo div -sub d.nc -timmean d.nc -timstd d.nc {}",
         lambda d: (d - d.mean("time")) / d.std("time"), all_of_them),
        ("global mean by area", "reduce d.nc {} --with mean --axis lat,lon --weights area", "cdo fldmean d.nc {}", None, all_of_them),
        ("mean by cosine", "reduce d.nc {} --with mean --axis lat,lon --weights lat", None,
         lambda d: d.weighted(np.cos(np.deg2rad(d.lat))).mean(("lat", "lon")), all_of_them),
        ("zonal mean", "reduce d.nc {} --with mean --axis lon", "cdo zonmean d.nc {}", lambda d: d.mean("lon"), all_of_them),
        ("box mean by area", ["reduce", "d.nc", "{}", "--with", "mean", "--axis", "lat,lon", "--weights", "area", "--sel", box],
         "cdo fldmean -sellonlatbox,10,40,30,60 d.nc {}", None, all_of_them),
        ("a box", ["copy", "d.nc", "{}", "--sel", box], "cdo sellonlatbox,10,40,30,60 d.nc {}", lambda d: d.sel(part), all_of_them),
        ("the same, NCO", ["copy", "d.nc", "{}", "--sel", box], "ncks -O -d lat,30.,60. -d lon,10.,40. d.nc {}", None, all_of_them),
        ("a box around 0°", ["copy", "d.nc", "{}", "--sel", "lon=-20:30"], "cdo sellonlatbox,-20,30,-90,90 d.nc {}", None, all_of_them),
        ("a month", ["copy", "d.nc", "{}", "--sel", "time=2001-02"], "cdo seldate,2001-02-01,2001-02-28 d.nc {}",
         lambda d: d.sel(time="2001-02"), all_of_them),
        ("every tenth day", ["copy", "d.nc", "{}", "--sel", "time@::10"], "ncks -O -d time,0,,10 d.nc {}", lambda d: d.isel(time=slice(0, None, 10)), all_of_them),
        ("nearest point", ["copy", "d.nc", "{}", "--sel", "lat~48.2, lon~16.4"], "cdo remapnn,lon=16.4_lat=48.2 d.nc {}",
         lambda d: d.sel(lat=48.2, lon=16.4, method="nearest"), all_of_them),
        ("months joined", "concat m-*.nc {} --axis time", "ncrcat -O m-*.nc {}", None, all_of_them),
        ("the same, CDO", "concat m-*.nc {} --axis time", "cdo mergetime m-*.nc {}", None, all_of_them),
        ("one variable", "copy d.nc::t2m {}", "ncks -O -v t2m d.nc {}", lambda d: d[["t2m"]], ["t2m"]),
        ("one variable joined", "concat m-*.nc {} --axis time --only u", "cdo select,name=u m-*.nc {}", None, ["u"]),
        ("transposed", "copy d.nc {} --dims lat,lon,time", "ncpdq -O -a lat,lon,time d.nc {}", lambda d: d.transpose("lat", "lon", "time", ...), all_of_them),
        ("rolling mean", "reduce d.nc {} --with mean --rolling time=30", None, lambda d: d[["t2m", "u", "v"]].rolling(time=30).mean(), all_of_them),
        ("95th percentile", "reduce d.nc {} --with p95 --axis time", None, lambda d: d[["t2m", "u", "v"]].chunk(time=-1).quantile(0.95, "time"), all_of_them),
        ("bilinear grid", f"regrid d.nc {{}} --to {grid}", "cdo remapbil,grid.txt d.nc {}", None, all_of_them),
        ("conservative grid", f"regrid d.nc {{}} --to {grid} --method conservative", "cdo remapcon,grid.txt d.nc {}", None, all_of_them),
        ("coarser cells", "coarsen d.nc {} --by lat=4,lon=4", None, lambda d: d.coarsen(lat=4, lon=4).mean(), all_of_them),
        ("weeks", "coarsen d.nc {} --by time=10", "cdo timselmean,10 d.nc {}", lambda d: d.coarsen(time=10).mean(), all_of_them),
        ("degrees Celsius", "calc {} t-273.15 t=d.nc --only t2m", "cdo subc,273.15 -selname,t2m d.nc {}", lambda d: d[["t2m"]] - 273.15, ["t2m"]),
        ("days above 290 K", "calc {} sum(t>290,time) t=d.nc --only t2m", "cdo timsum -gtc,290 -selname,t2m d.nc {}",
         lambda d: (d[["t2m"]] > 290).sum("time"), ["t2m"]),
        ("masked", "calc {} where(t>290,t,0) t=d.nc --only t2m", None, lambda d: d[["t2m"]].where(d.t2m > 290, 0), ["t2m"]),
        ("difference", "calc {} a-b a=d.nc b=e.nc", "cdo sub d.nc e.nc {}", None, all_of_them),
        ("the same, NCO", "calc {} a-b a=d.nc b=e.nc", "ncdiff -O d.nc e.nc {}", None, ["u", "v"]),
        ("ensemble mean", "calc {} (a+b)/2 a=d.nc b=e.nc", "cdo ensmean d.nc e.nc {}", None, all_of_them),
        ("range over time", "calc {} max(t,time)-min(t,time) t=d.nc", "cdo timrange d.nc {}", lambda d: d.max("time") - d.min("time"), all_of_them),
        ("deviation over time", "reduce d.nc {} --with std --axis time", "cdo timstd d.nc {}", lambda d: d.std("time"), all_of_them),
        ("day of the maximum", "reduce d.nc {} --with argmax --axis time", None, lambda d: d[["t2m", "u", "v"]].argmax("time"), all_of_them),
        ("wind speed", "calc {} sqrt(u*u+v*v) u=d.nc::u v=d.nc::v", "cdo expr,data=sqrt(u*u+v*v) d.nc {}", lambda d: np.hypot(d.u, d.v).to_dataset(name="data"), ["data"]),
        ("unpacked", "calc {} a a=d.nc", "ncpdq -O -U d.nc {}", None, ["t2m", "u"]),
        ("south first", ["copy", "d.nc", "{}", "--sel", "lat@::-1"], "cdo invertlat d.nc {}", lambda d: d.isel(lat=slice(None, None, -1)), all_of_them),
        ("to Zarr", "copy d.nc {}.zarr --format v2", None, lambda d: d, []),
        ("other chunks", "rechunk d.nc {}.zarr --chunks time=365,lat=12 --format v2", None, lambda d: d.chunk(time=365, lat=12), []),
        ("a series as text", ["copy", "d.nc::t2m", "{}.csv", "--coordinates", "--sel", "lat~48.2, lon~16.4"], None,
         lambda d: d.t2m.sel(lat=48.2, lon=16.4, method="nearest").to_dataframe(), []),
        ("statistics", "stats d.nc", "cdo infon d.nc", None, None),
        ("compared", "diff d.nc d.nc", "cdo diffn d.nc d.nc", None, None),
    ]


def remove(name):
    for path in name, f"{name}.zarr", f"{name}.csv":
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def timed(words, rounds, out=""):
    """The least seconds of some runs; None and what was said where it failed."""
    best = float("inf")
    for _ in range(rounds):
        remove(out)
        begin = time.perf_counter()
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        best = min(best, time.perf_counter() - begin)
    return best, []


def by_xarray(job, rounds):
    import xarray as xr
    best = float("inf")
    for _ in range(rounds):
        remove("x.nc")
        begin = time.perf_counter()
        with warnings.catch_warnings(), xr.open_dataset("d.nc", chunks={"time": 100}) as data:
            warnings.simplefilter("ignore")
            made = job(data.drop_vars("time_bnds"))
            if hasattr(made, "to_netcdf"):
                for name in made.variables:
                    made[name].encoding = {}
                made.to_netcdf("x.nc")
            else:
                made.to_csv("x.csv")
        best = min(best, time.perf_counter() - begin)
    remove("x")
    return best


def differences(path, other, names):
    """What is not the same, in words; empty: nothing."""
    import xarray as xr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, decode_times=False) as made, xr.open_dataset(other, decode_times=False) as wanted:
            for name in names:
                if name not in made or name not in wanted:
                    return f"no {name}"
                got, right = np.squeeze(made[name].values.astype("f8")), np.squeeze(wanted[name].values.astype("f8"))
                if got.shape != right.shape:
                    return f"{name}: shape {got.shape} beside {right.shape}"
                if not np.allclose(got, right, rtol=1e-4, atol=2e-3, equal_nan=True):
                    return f"{name}: by {np.nanmax(np.abs(got - right)):.3g}"
    return ""


def expanded(words):
    """Patterns as a shell expands them."""
    return [name for word in words for name in sorted(glob.glob(word)) or [word]]


def main(options, program):
    try:
        import xarray as xr  # noqa: F401
        import dask  # noqa: F401
    except ImportError:
        sys.exit("jobs.py --day needs xarray with dask and netCDF4, which write the data set")
    grid = write_sources(options.mib)
    print(f"d.nc: {os.path.getsize('d.nc') >> 20} MiB; ratios of times, tessera / the other")
    print(f"{'':22}{'tessera s':>10}{'program':>9}{'xarray':>9}  beside them")
    wrong = 0
    for name, words, command, job, names in day(grid):
        if options.only and name not in options.only.split(","):
            continue
        words = [word.replace("{}", "o.nc") if names else word.replace("{}", "o") for word in (words.split() if isinstance(words, str) else words)]
        own = [program, *words, "--max-memory", options.max_memory] + (["--quiet"] if names is not None else [])
        seconds, said = timed(own, options.rounds, "o.nc" if names else "o")
        columns, found = ["-", "-"], list(said)
        if command and shutil.which(command.split()[0]):
            peer = expanded(command.replace("{}", "p.nc").split())
            theirs, why = timed([peer[0], *(["-s", "-O", "-b", "F32"] if peer[0] == "cdo" else []), *peer[1:]], options.rounds, "p.nc")
            found += [f"{peer[0]}: {line}" for line in why]
            if seconds and theirs:
                columns[0] = f"{seconds / theirs:.2f}"
                found += [f"{peer[0]}: {line}" for line in [differences("o.nc", "p.nc", names)] if line] if names else []
        if job:
            try:
                theirs = by_xarray(job, options.rounds)
            except Exception as error:  # noqa: BLE001 (a version that cannot do it)
                theirs, found = None, [*found, f"xarray: {type(error).__name__}: {str(error)[:60]}"]
            if seconds and theirs:
                columns[1] = f"{seconds / theirs:.2f}"
                found += [f"xarray: {line}" for line in [differences("o.nc", "x.nc", names)] if line] if names else []
        for path in "o.nc", "o", "p.nc", "x.nc":
            remove(path)
        wrong += bool(found)
        print(f"{name:22}{f'{seconds:.2f}' if seconds else '-':>10}{columns[0]:>9}{columns[1]:>9}  {'; '.join(found) or ('the same' if names else 'not compared')}", flush=True)
    print(f"{wrong} of these differ or failed")
