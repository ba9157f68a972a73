"""Many runs, on Spark: journals and brokers' logs go in, tables that explain every rebalance come out.

``schemas`` says what every table holds. ``reading`` turns files into one table of events, ``tables`` and ``audits``
are functions from DataFrame to DataFrame. pyspark is imported in this package only.
"""

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
