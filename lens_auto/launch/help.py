# SPDX-License-Identifier: Apache-2.0
"""The text of `lens-instrument --help`."""

USAGE = 'usage: lens-instrument [OPTIONS] [--] COMMAND ARGS...'

HELP = (
    USAGE
    + """

Runs COMMAND unchanged and records what it and every Python process it starts do, as OpenTelemetry spans and metrics.
Without options the run is kept in ./lens-runs/<run id>, and a table of steps and phases is printed at its end.

what to record
  --rules FILE           a rule file of your own, besides the built-in ones; may be repeated
  --span-groups GROUPS   groups or presets, comma separated: per_step,generation
  --telemetry FILE       a YAML file with a `telemetry:` block
  --set FIELD=VALUE      any field of that block; may be repeated
  --service-name NAME    service.name of every process

where it goes
  --exporter NAME        file (a local folder), otlp (the endpoint in OTEL_EXPORTER_OTLP_*), console (JSON lines)
  --run-dir DIR          the run's folder itself, instead of lens-runs/<run id>

how it runs
  --strict               refuse what is doubtful before the start; exit 1 after a good run if a rule matched nothing
                         or in part, an attribute could not be read, or recording failed; not with --exec
  --exec                 the command replaces the launcher (same pid); no summary, a detached process collects
  --progress[=STEPS]     the terminal's last line: step, pace, phases, and with STEPS the time that is left
  --no-summary           no table at the end; so does LENS_NO_SUMMARY=1

instead of running
  --info [COMMAND...]    print version, settings with their sources, rule files and what would be hooked
  --replay DIR           finish or send again what a run's folder and spool still hold
  --version, --help

Exit status: the command's own, also when it died of a signal. 127: no such command, 126: it cannot be executed,
2: refused before the command was started (an argument, a setting, a rule file).
"""
)
