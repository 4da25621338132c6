# SPDX-License-Identifier: Apache-2.0
"""Rule files: from YAML to the plan that traced processes follow, and the tools around it.

The launcher calls `finding` and `plan_cache`; `hook` and `wrap` call `plan` and `selection` in every traced process, so
those two import nothing but a little of the standard library. Nothing here imports a framework, `launch`, `hook`,
`wrap`, `record` or `collect`.
"""
