"""Makes the files of this folder: make.py FOLDER. Takes eccodes (Debian's python3-eccodes)."""

import sys

import eccodes
import numpy as np

folder = sys.argv[1]
for name, sample in (("one.grib1", "regular_ll_sfc_grib1"), ("two.grib2", "regular_ll_sfc_grib2")):
    values = np.arange(24.0).reshape(2, 3, 4) * 0.5 + 270
    values[0, 1, 2] = 9999
    with open(f"{folder}/{name}", "wb") as out:
        for step, part in enumerate(values):
            handle = eccodes.codes_grib_new_from_samples(sample)
            for key, value in dict(Ni=4, Nj=3, latitudeOfFirstGridPointInDegrees=20, latitudeOfLastGridPointInDegrees=10,
                                   longitudeOfFirstGridPointInDegrees=20, longitudeOfLastGridPointInDegrees=50,
                                   iDirectionIncrementInDegrees=10, jDirectionIncrementInDegrees=5, shortName="t",
                                   dataDate=20240229, dataTime=600, endStep=6 * step, bitmapPresent=1, missingValue=9999,
                                   bitsPerValue=16).items():
                eccodes.codes_set(handle, key, value)
            eccodes.codes_set_values(handle, part.ravel())
            out.write(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)
    # What ecCodes itself decodes.
    with open(f"{folder}/{name}", "rb") as file:
        parts = []
        while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
            parts.append(eccodes.codes_get_values(handle).reshape(3, 4))
            eccodes.codes_release(handle)
    decoded = np.array(parts)
    decoded[decoded == 9999] = np.nan
    np.save(f"{folder}/{name}.npy", decoded.astype("f4"))
