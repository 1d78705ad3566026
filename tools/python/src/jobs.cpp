// Jobs: plans of copies and computations in units for many processes.
#include <pybind11/stl.h>

#include <tessera/job.h>

#include <filesystem>
#include <string>
#include <utility>

#include "convert.h"
#include "handle.h"
#include "recipes.h"

namespace tessera::python {

namespace {

/// A worker of one thread, which the package keeps for it.
class WorkerHandle {
public:
    WorkerHandle(const std::string& path, const PlaceOptions& place) {
        const py::gil_scoped_release released;
        worker_ = Held<JobWorker>(std::make_unique<JobWorker>(Job::open(path), place.store()));
    }

    /// Does a unit, and waits until its record is written.
    std::tuple<bool, std::int64_t, std::uint64_t, double> run(std::int64_t unit, const WorkOptions& work) {
        const auto worker = worker_.share();
        const UnitDone done = Work(work).run([&](const IoOptions& io) {
            try {
                const UnitDone result = worker->run(unit, io);
                worker->flush();
                return result;
            } catch (const SourceChanged&) {
                throw;
            } catch (const Error& e) {
                if (e.code() != ErrorCode::cancelled) worker->fail(unit, e.what());
                throw;
            }
        });
        return {done.before, done.files, done.bytes, static_cast<double>(done.took.count()) / 1000};
    }

private:
    Held<JobWorker> worker_;
};

void plan(const py::dict& given, const std::string& target, const std::string& file, std::int64_t parts,
          const PlaceOptions& place, const WorkOptions& work) {
    const Asked asked = asked_from_python(given);
    about_keywords(asked, [&] {
        require_planned(asked.result);
        Work(work).run([&](const IoOptions& io) {
            std::vector<std::string> notes;
            PlanOptions options{.copy = hierarchy_options(asked, target, io, notes), .parts = parts};
            options.copy.open = nullptr;
            options.copy.store = place.store();
            (void)plan_job(rounded_for(asked.recipe, asked.result, target), target, file, options);
        });
    });
}

std::string state_of(const std::string& path) {
    const py::gil_scoped_release released;
    const Job job = Job::open(path);
    return job_state_value(job, job_state(job)).dump({.ascii = true});
}

std::string finish(const std::string& path, bool read, const PlaceOptions& place, const WorkOptions& work) {
    return Work(work).run([&](const IoOptions& io) {
        const Job job = Job::open(path);
        const FinishOptions options{.read = read, .io = io, .store = place.store()};
        return job_state_value(job, finish_job(job, options)).dump({.ascii = true});
    });
}

}  // namespace

void bind_jobs(py::module_& module) {
    py::class_<WorkerHandle>(module, "JobWorker")
        .def(py::init<const std::string&, const PlaceOptions&>())
        .def("run", &WorkerHandle::run);
    module.def("plan_job", &plan);
    module.def("job_state", &state_of);
    module.def("finish_job", &finish);
    module.def("job_facts", [](const std::string& path) {
        const Job job = Job::open(path);
        return std::tuple(job.target, job.units(), job.parts);
    });
    module.def("job_part", [](const std::string& path, std::int64_t number, std::int64_t of) {
        const UnitRange range = Job::open(path).part(number, of);
        return std::pair(range.first, range.end);
    });
}

}  // namespace tessera::python
