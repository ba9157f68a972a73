"""The tables ``rebalances`` and ``ownership`` in DuckDB's SQL, written as one would write them there.

Every column and every rule is there, so that both do the same work; ``tests/pipeline`` compares whole rows.
"""

from __future__ import annotations

REBALANCES = """
with of_all as (
    select *, sum((event = 'rebalance_started')::int) over (partition by run_id, group_id, source, node order by seq)
        + coalesce((event in ('member_joined', 'member_rejoined', 'static_member_replaced', 'member_removed')
                    and state not in ('PreparingRebalance', 'Assigning'))::int, 0) as n,
        last_value(case when event in ('rebalance_started', 'rebalance_completed', 'group_emptied') then event end
                   ignore nulls) over (partition by run_id, group_id, source, node order by seq) as newest
    from events
    where event in ('rebalance_started', 'join_phase_ended', 'target_assignment_computed', 'assignment_received',
                    'rebalance_completed', 'group_emptied', 'group_loaded', 'group_deleted', 'member_joined',
                    'member_rejoined', 'member_removed', 'member_reconciled', 'revocation_completed')
       or (event = 'group_state_changed' and state = 'Dead')
       or (event = 'static_member_replaced' and (rebalance or state in ('PreparingRebalance', 'Assigning')))
), of_groups as (
    select * from of_all
    where event not in ('member_reconciled', 'revocation_completed') or newest = 'rebalance_started'
), gathered as (
    select run_id, group_id, source, node, n,
        any_value({seq: seq, at_ms: at_ms, generation: generation, previous_state: previous_state, cause: cause,
                   cause_member_id: cause_member_id, cause_group_instance_id: cause_group_instance_id,
                   client_reason: client_reason, initial: initial, members: members, group_type: group_type,
                   file: file, line: line})
            filter (event = 'rebalance_started') as began,
        any_value({at_ms: at_ms, generation: generation, leader: leader, protocol: protocol, members: members,
                   absent: absent, join_ms: join_ms}) filter (event in
            ('join_phase_ended', 'target_assignment_computed')) as met,
        any_value({at_ms: at_ms, leader: leader}) filter (event = 'assignment_received') as given,
        any_value({at_ms: at_ms, generation: generation, leader: leader, previous_leader: previous_leader,
                   protocol: protocol, members: members, members_before: members_before,
                   owned_before: owned_before, owned_after: owned_after, moved: moved, regained: regained,
                   join_ms: join_ms, sync_ms: sync_ms}) filter (event = 'rebalance_completed') as done,
        min({seq: seq, event: event, at_ms: at_ms}) filter (event in
            ('rebalance_completed', 'group_emptied', 'group_loaded', 'group_deleted', 'group_state_changed')) as ending,
        coalesce(list(member_id order by seq) filter (event = 'member_joined'), []) as joined,
        coalesce(list(member_id order by seq) filter (event = 'member_removed' and cause = 'left'), []) as "left",
        coalesce(list(member_id order by seq) filter (event = 'member_removed' and cause != 'left'), [])
            as evicted,
        coalesce(list(member_id order by seq) filter (event = 'static_member_replaced'), []) as replaced,
        max({at_ms: at_ms, seq: seq, member_id: member_id})
            filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced', 'member_reconciled'))
            as slowest,
        sum(len(partitions)) filter (event = 'revocation_completed') as given_up,
        sum(revocation_ms) filter (event = 'revocation_completed') as revoking_ms,
        sum(at_ms) filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced')) as joins_at_ms,
        count(*) filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced')) as joins,
        bool_or(confidence != 'exact') as guessed
    from of_groups group by all having began is not null
), loads as (
    select run_id, group_id, list(distinct {at_ms: at_ms, node: node}) as loads
    from events where event in ('group_loaded', 'group_created') group by all
), ended as (
    select *, case when ending.event = 'rebalance_completed' then 'completed'
                   when ending.event = 'group_emptied' then 'emptied'
                   when ending is not null then 'aborted'
                   when coalesce(following.previous_state in ('CompletingRebalance', 'Reconciling'),
                                 following is not null)
                       then 'superseded'
                   when following is not null or taken_over is not null then 'aborted' else 'open' end as outcome,
        coalesce(ending.at_ms, following.at_ms, taken_over) as ended_at_ms
    from (select g.*, lead(began) over (partition by run_id, group_id, source, node order by n) as following,
                 list_min([x.at_ms for x in loads if x.at_ms >= began.at_ms and x.node != g.node]) as taken_over
          from gathered g left join loads using (run_id, group_id))
), numbered as (
    select *, row_number() over g as number, row_number() over s as place,
        coalesce(lag(outcome) over s = 'superseded', false) as goes_on,
        began.at_ms - max(coalesce(ended_at_ms, began.at_ms)) over (
            partition by run_id, group_id order by began.at_ms, source, node, began.seq
            rows between unbounded preceding and 1 preceding) as gap_ms
    from ended window g as (partition by run_id, group_id order by began.at_ms, source, node, began.seq),
                      s as (partition by run_id, group_id, source, node order by began.seq)
), chained as (
    select *, last_value(case when not goes_on then {number: number, place: place} end ignore nulls) over (
            partition by run_id, group_id, source, node order by began.seq) as first_one,
        last_value(case when not coalesce(gap_ms <= 60000, false) then number end ignore nulls) over (
            partition by run_id, group_id order by began.at_ms, source, node, began.seq) as chain
    from numbered
), listed as (
    -- A source that says who owned what, but not what moved.
    select *, case when done.moved is null or done.regained is null then list_transform(done.owned_after, lambda x: {
            now: x.member_id, was: list_filter(done.owned_before, lambda y: y.topic = x.topic
                                               and y."partition" = x."partition")[1].member_id}) end as hands,
        coalesce(done.members, met.members) as now_in,
        coalesce(done.previous_leader, case when guessed then last_value(led ignore nulls) over (
            partition by run_id, group_id, source, node order by n rows between unbounded preceding and 1 preceding)
            end) as led_before
    from (select *, coalesce(done.leader, met.leader, given.leader) as led,
                 concat_ws('/', run_id, group_id, node, began.seq) as rebalance_id from chained)
)
select run_id, group_id, source, node, rebalance_id, number, began.at_ms as prepared_at_ms, met.at_ms as joined_at_ms,
    given.at_ms as assigned_at_ms, done.at_ms as stable_at_ms, ended_at_ms, outcome,
    began.generation as generation_from, coalesce(done.generation, met.generation) as generation_to,
    coalesce(began.cause, 'unknown') as cause,
    began.cause_member_id as cause_member_id, began.cause_group_instance_id as cause_group_instance_id,
    case when began.cause_group_instance_id is null then nullif(regexp_extract(began.cause_member_id,
        '^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', 1), '') end as cause_client_id,
    began.client_reason as client_reason, began.previous_state as previous_state, began.initial as initial,
    place - first_one.place + 1 as attempt, first_one.number as episode,
    coalesce(done.members_before, list_filter(began.members, lambda x: not list_contains(joined, x)))
        as members_before,
    now_in as members_after, joined, "left", evicted, replaced, met.absent as absent, led as leader, led_before
        as previous_leader, led_before != led as leader_changed,
    coalesce(done.protocol, met.protocol) as protocol, len(done.owned_before) as owned_before,
    len(done.owned_after) as owned_after, moved, regained,
    (len(done.owned_after) - moved - regained) / nullif(len(done.owned_after) - regained, 0) as stickiness,
    coalesce(done.join_ms, met.join_ms, met.at_ms - began.at_ms) as join_ms,
    coalesce(done.sync_ms, done.at_ms - met.at_ms) as sync_ms, ended_at_ms - began.at_ms as unavailable_ms,
    case when joins > 0 then met.at_ms * joins - joins_at_ms end as members_waiting_ms,
    case when slowest.at_ms >= began.at_ms then slowest.member_id end as slowest_member_id,
    case when slowest.at_ms >= began.at_ms then slowest.at_ms - began.at_ms end as slowest_ms, chain,
    began.group_type as group_type, case when began.group_type = 'consumer' then coalesce(given_up, 0) end as given_up,
    case when began.group_type = 'consumer' then coalesce(revoking_ms, 0) end as revocation_ms,
    count(*) over (partition by run_id, group_id, chain) as chain_length,
    case when guessed then 'inferred' else 'exact' end as confidence, began.file as file, began.line as line,
    date '1970-01-01' + (began.at_ms // 86400000)::int as day
from (select *,
          coalesce(done.moved, len(list_filter(hands, lambda x: x.was != x.now and list_contains(now_in, x.was))))
              as moved,
          coalesce(done.regained, len(list_filter(hands, lambda x: not coalesce(list_contains(now_in, x.was), false))))
              as regained
      from listed)
"""

OWNERSHIP = """
with lives as (
    select *, case when source = 'simulation' then '' else node end as place,
        case when source = 'simulation' then at_ms else 0 end as k1,
        case when source != 'simulation' then 0 when event = 'consumer_started' then 0
             when event in ('consumer_crashed', 'consumer_failed', 'consumer_stopped') then 2 else 1 end as k2,
        case event when 'partitions_assigned' then 'assigned' when 'partitions_revoked' then 'revoked'
                   when 'partitions_lost' then 'lost' when 'consumer_started' then 'started'
                   when 'join_sent' then 'gone' when 'consumer_crashed' then 'crashed'
                   when 'consumer_failed' then 'crashed' else 'stopped' end
            as how
    from (select run_id, coalesce(group_id, '') as group_id, client_id, node, source, event, at_ms, seq, member_id,
                 group_instance_id, generation, partitions, confidence, file, line
          from events
          where event in ('partitions_assigned', 'partitions_revoked', 'partitions_lost', 'consumer_started',
                          'consumer_crashed', 'consumer_failed', 'consumer_stopped', 'consumer_closed', 'join_sent')
            and (event != 'join_sent' or (member_id = '' and len(owned) = 0 and source != 'simulation')))
    qualify how != 'gone' or lag(how) over (partition by run_id, group_id, place, client_id order by k1, k2, seq)
                             = 'assigned'
), watched as (
    select *, last_value(case when how in ('crashed', 'stopped', 'gone')
                              then {k1: k1, k2: k2, seq: seq, at_ms: at_ms, how: how} end ignore nulls) over (
            partition by run_id, group_id, place, client_id order by k1 desc, k2 desc, seq desc
            rows between unbounded preceding and current row) as gone
    from lives
), touched as (
    select * exclude (partitions), unnest(partitions, max_depth := 2)
    from watched where how in ('assigned', 'revoked', 'lost')
), opened as (
    select *, lead({k1: k1, k2: k2, seq: seq, at_ms: at_ms, how: how}) over (
        partition by run_id, group_id, place, client_id, topic, "partition" order by k1, k2, seq) as following
    from touched qualify how = 'assigned'
), removals as (
    select run_id, group_id, case event when 'static_member_replaced' then other_member_id else member_id end
            as member_id,
        min(case when event != 'member_joined' then {at_ms: at_ms, cause: coalesce(cause, 'replaced')} end) as removed,
        max(session_timeout_ms) as session_timeout_ms
    from events where event in ('member_removed', 'static_member_replaced', 'member_joined')
    group by all having removed is not null
), by_consumers as (
    select run_id, group_id, topic, "partition", member_id, group_instance_id, client_id,
        concat_ws('/', nullif(place, ''), client_id) as owner, node, at_ms as from_ms,
        case when known then greatest(least(died, ended.at_ms), at_ms) else ended.at_ms end as to_ms,
        case when known then 'expired' when ended.how = 'assigned' then 'rebalance' else ended.how end as "end",
        generation, case when known or ended.how = 'gone' then 'inferred' else confidence end as confidence,
        source as from_source, seq as from_seq, file, line
    from (select *, coalesce((ended is null or ended.how = 'gone') and source != 'simulation'
                             and removed.at_ms >= at_ms, false) as known,
                 removed.at_ms - case when removed.cause = 'session-expiry' then coalesce(session_timeout_ms, 0) else 0
                                 end as died
          from (select *, least(following, gone) as ended from opened)
          left join removals using (run_id, group_id, member_id))
), given as (
    select *, lead(at_ms) over g as next_start,
        first_value(case when event != 'rebalance_started' then at_ms end ignore nulls) over (
            g rows between 1 following and unbounded following) as next_end
    from (select run_id, group_id, event, node, source, seq, at_ms, generation, protocol, group_type, owned_after, file,
                 line
          from events where event in ('rebalance_started', 'rebalance_completed', 'group_emptied'))
    anti join (select distinct run_id, group_id from lives where how = 'assigned') using (run_id, group_id)
    window g as (partition by run_id, group_id order by at_ms, seq)
), given_out as (
    select *, coalesce(lag(until) over p = at_ms and lag(member_id) over p = member_id, false) as goes_on
    from (select * exclude (owned_after), unnest(owned_after, max_depth := 2),
                 case when protocol = 'cooperative-sticky' or group_type = 'consumer' then next_end else next_start end
                     as until
          from given where event = 'rebalance_completed')
    window p as (partition by run_id, group_id, topic, "partition" order by at_ms, seq)
), islands as (
    select *, sum((not goes_on)::int) over (
        partition by run_id, group_id, topic, "partition" order by at_ms, seq
        rows between unbounded preceding and current row) as island
    from given_out
), by_coordinator as (
    select run_id, group_id, topic, "partition", member_id, member_id as owner, first.node as node,
        first.at_ms as from_ms, last.until as to_ms, 'rebalance' as "end", first.generation as generation,
        'inferred' as confidence, first.source as from_source, first.seq as from_seq, first.file as file,
        first.line as line
    from (select run_id, group_id, topic, "partition", island, member_id,
                 min({at_ms: at_ms, seq: seq, node: node, source: source, generation: generation, file: file,
                      line: line}) as first,
                 max_by({until: until}, {at_ms: at_ms, seq: seq}) as last
          from islands group by all)
), ends as (
    select run_id, coalesce(max(at_ms) filter (event = 'run_ended'), max(at_ms)) as ends_at_ms from events group by all
), closed as (
    select * exclude (to_ms, "end", ends_at_ms), greatest(from_ms, coalesce(to_ms, ends_at_ms)) as to_ms,
        case when to_ms is null then 'open' else "end" end as "end"
    from (from by_consumers union all by name from by_coordinator) join ends using (run_id)
), overlapping as (
    select *, max({to_ms: to_ms, owner: owner}) over (
        partition by run_id, group_id, topic, "partition" order by from_ms, to_ms, owner, from_seq
        rows between unbounded preceding and 1 preceding) as furthest
    from closed
), listed as (
    select run_id, topic, partition_count, at_ms, event = 'topic_written' as outside,
        bool_or(event = 'topic_written') over (partition by run_id, topic) as known
    from events where event in ('topic_created', 'topic_grown', 'topic_written')
), logs as (
    select run_id, topic, "partition", min(at_ms) as since_ms
    from (select *, unnest(range(partition_count)) as "partition" from listed where outside or not known) group by all
), wanted as (
    select run_id, group_id, topic, "partition", greatest(wanted_ms, since_ms) as since_ms
    from (select run_id, group_id, topic, min(at_ms) as wanted_ms
          from (select run_id, coalesce(group_id, '') as group_id, at_ms, unnest(topics) as topic from events
                where event in ('subscribing', 'member_joined', 'member_rejoined')) group by all)
    join logs using (run_id, topic)
), whole as (
    select *, coalesce(first_ms, ends_at_ms) as got_ms
    from (select run_id, group_id, topic, "partition", min(from_ms) as first_ms, max(to_ms) as last_ms,
                 min(confidence) as sure
          from closed group by all)
    full join wanted using (run_id, group_id, topic, "partition") join ends using (run_id)
), spans as (
    select run_id, group_id, topic, "partition", 'owned' as kind, member_id, group_instance_id, client_id, owner, node,
        from_ms, to_ms, generation, "end",
        case when furthest is null then 0 else greatest(0, least(furthest.to_ms, to_ms) - from_ms) end as overlap_ms,
        case when furthest.to_ms > from_ms and to_ms > from_ms then furthest.owner end as overlaps_owner, confidence,
        from_source, from_seq, file, line
    from overlapping
    union all by name
    select run_id, group_id, topic, "partition", 'gap' as kind, furthest.to_ms as from_ms, from_ms as to_ms,
        'between' as "end", confidence
    from overlapping where furthest.to_ms < from_ms
    union all by name
    select run_id, group_id, topic, "partition", 'gap' as kind, since_ms as from_ms, got_ms as to_ms,
        'initial' as "end", coalesce(sure, 'exact') as confidence
    from whole where since_ms < got_ms
    union all by name
    select run_id, group_id, topic, "partition", 'gap' as kind, last_ms as from_ms, ends_at_ms as to_ms,
        'final' as "end", coalesce(sure, 'exact') as confidence
    from whole where last_ms < ends_at_ms
)
select *, to_ms - from_ms as length_ms, date '1970-01-01' + (from_ms // 86400000)::int as day from spans
"""
