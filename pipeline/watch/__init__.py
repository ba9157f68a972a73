"""`rejoin watch` of coordinators and journals: events as a stream of Spark, tables step by step, a dashboard."""
