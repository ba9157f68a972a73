"""The tables ``rebalances`` and ``ownership`` in DuckDB's SQL, written as one would write them there."""

from __future__ import annotations

REBALANCES = """
with facts as (
    select *, sum((event = 'rebalance_started')::int) over (partition by run_id, group_id, source, node order by seq)
        + coalesce((event in ('member_joined', 'member_rejoined', 'static_member_replaced', 'member_removed')
                    and state != 'PreparingRebalance')::int, 0) as n
    from events
    where event in ('rebalance_started', 'join_phase_ended', 'assignment_received', 'rebalance_completed',
                    'group_emptied', 'group_loaded', 'group_deleted', 'member_joined', 'member_rejoined',
                    'member_removed')
       or (event = 'group_state_changed' and state = 'Dead')
       or (event = 'static_member_replaced' and (rebalances or state = 'PreparingRebalance'))
), gathered as (
    select run_id, group_id, source, node, n,
        any_value({seq: seq, at_ms: at_ms, generation: generation, previous_state: previous_state, cause: cause,
                   cause_member_id: cause_member_id, cause_group_instance_id: cause_group_instance_id,
                   client_reason: client_reason, initial: initial, members: members, file: file, line: line})
            filter (event = 'rebalance_started') as began,
        any_value({at_ms: at_ms, generation: generation, leader: leader, protocol: protocol, members: members,
                   absent: absent, join_ms: join_ms}) filter (event = 'join_phase_ended') as met,
        any_value(at_ms) filter (event = 'assignment_received') as assigned_at_ms,
        any_value({at_ms: at_ms, generation: generation, leader: leader, previous_leader: previous_leader,
                   protocol: protocol, members: members, members_before: members_before,
                   owned_before: len(owned_before), owned_after: len(owned_after), moved: moved, regained: regained,
                   join_ms: join_ms, sync_ms: sync_ms}) filter (event = 'rebalance_completed') as done,
        min({seq: seq, event: event, at_ms: at_ms}) filter (event in
            ('rebalance_completed', 'group_emptied', 'group_loaded', 'group_deleted', 'group_state_changed')) as ending,
        list(member_id order by seq) filter (event = 'member_joined') as joined,
        list(member_id order by seq) filter (event = 'member_removed' and cause = 'left') as gone,
        list(member_id order by seq) filter (event = 'member_removed' and cause != 'left') as evicted,
        list(member_id order by seq) filter (event = 'static_member_replaced') as replaced,
        max({at_ms: at_ms, seq: seq, member_id: member_id})
            filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced')) as slowest,
        sum(at_ms) filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced')) as joins_at_ms,
        count(*) filter (event in ('member_joined', 'member_rejoined', 'static_member_replaced')) as joins
    from facts group by all having began is not null
), loads as (
    select run_id, group_id, list(distinct {at_ms: at_ms, node: node}) as loads
    from events where event in ('group_loaded', 'group_created') group by all
), ended as (
    select *, case when ending.event = 'rebalance_completed' then 'completed'
                   when ending.event = 'group_emptied' then 'emptied'
                   when ending is not null then 'aborted'
                   when coalesce(following.previous_state = 'CompletingRebalance', following is not null)
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
            rows between unbounded preceding and 1 preceding) as quiet_ms
    from ended window g as (partition by run_id, group_id order by began.at_ms, source, node, began.seq),
                      s as (partition by run_id, group_id, source, node order by began.seq)
), chained as (
    select *, last_value(case when not goes_on then {number: number, place: place} end ignore nulls) over (
            partition by run_id, group_id, source, node order by began.seq) as first_one,
        last_value(case when not coalesce(quiet_ms <= 60000, false) then number end ignore nulls) over (
            partition by run_id, group_id order by began.at_ms, source, node, began.seq) as chain
    from numbered
)
select run_id, group_id, concat_ws('/', run_id, group_id, node, began.seq) as rebalance_id, number, node, source,
    began.* exclude (seq, members), coalesce(done.generation, met.generation) as generation_to,
    met.at_ms as joined_at_ms, assigned_at_ms, done.at_ms as stable_at_ms, ended_at_ms, outcome,
    regexp_extract(began.cause_member_id, '^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', 1),
    place - first_one.place + 1 as attempt, first_one.number as episode,
    coalesce(done.members_before, list_filter(began.members, lambda x: not list_contains(coalesce(joined, []), x)))
        as before,
    coalesce(done.members, met.members) as members_after, joined, gone, evicted, replaced, met.absent,
    coalesce(done.leader, met.leader) as leader, done.previous_leader, done.previous_leader != leader as leader_changed,
    coalesce(done.protocol, met.protocol) as protocol, done.owned_before, done.owned_after, done.moved, done.regained,
    (done.owned_after - done.moved - done.regained) / nullif(done.owned_after - done.regained, 0) as stickiness,
    coalesce(done.join_ms, met.join_ms) as join_ms, done.sync_ms, ended_at_ms - began.at_ms as unavailable_ms,
    met.at_ms * joins - joins_at_ms as members_waiting_ms, slowest.member_id as slowest_member_id,
    slowest.at_ms - began.at_ms as slowest_ms, chain,
    count(*) over (partition by run_id, group_id, chain) as chain_length
from chained
"""

OWNERSHIP = """
with lives as (
    select run_id, group_id, client_id, node, source, at_ms, seq, member_id, group_instance_id, generation, file, line,
        partitions,
        case event when 'consumer_started' then 0 when 'consumer_crashed' then 2 when 'consumer_failed' then 2
                   when 'consumer_stopped' then 2 else 1 end as k,
        case event when 'partitions_assigned' then 'assigned' when 'partitions_revoked' then 'revoked'
                   when 'partitions_lost' then 'lost' when 'consumer_started' then 'started'
                   when 'consumer_crashed' then 'crashed' when 'consumer_failed' then 'crashed' else 'stopped' end
            as how
    from events where event in ('partitions_assigned', 'partitions_revoked', 'partitions_lost', 'consumer_started',
                                'consumer_crashed', 'consumer_failed', 'consumer_stopped', 'consumer_closed')
), watched as (
    select *, last_value(case when how in ('crashed', 'stopped') then {at_ms: at_ms, k: k, seq: seq, how: how} end
                         ignore nulls) over (
            partition by run_id, group_id, client_id order by at_ms desc, k desc, seq desc) as gone
    from lives
), touched as (
    select * exclude (partitions), unnest(partitions, max_depth := 2)
    from watched where how in ('assigned', 'revoked', 'lost')
), opened as (
    select *, lead({at_ms: at_ms, k: k, seq: seq, how: how}) over (
        partition by run_id, group_id, client_id, topic, "partition" order by at_ms, k, seq) as following
    from touched qualify how = 'assigned'
), ends as (
    select run_id, coalesce(max(at_ms) filter (event = 'run_ended'), max(at_ms)) as ends_at_ms from events group by all
), closed as (
    select run_id, group_id, topic, "partition", member_id, group_instance_id, client_id, node, at_ms as from_ms,
        coalesce(least(following, gone).at_ms, ends_at_ms) as to_ms,
        coalesce(least(following, gone).how, 'open') as "end",
        generation, source, seq, file, line
    from opened join ends using (run_id)
), overlapping as (
    select *, max({to_ms: to_ms, owner: client_id}) over (
        partition by run_id, group_id, topic, "partition" order by from_ms, to_ms, client_id, seq
        rows between unbounded preceding and 1 preceding) as furthest
    from closed
), logs as (
    select run_id, topic, unnest(range(max(partition_count))) as "partition", min(at_ms) as since_ms
    from events where event = 'topic_written' group by run_id, topic
), wanted as (
    select run_id, group_id, topic, "partition", greatest(wanted_ms, since_ms) as since_ms
    from (select run_id, group_id, topic, min(at_ms) as wanted_ms
          from (select run_id, group_id, at_ms, unnest(topics) as topic from events
                where event in ('subscribing', 'member_joined', 'member_rejoined')) group by all)
    join logs using (run_id, topic)
), whole as (
    select *, coalesce(first_ms, ends_at_ms) as got_ms
    from (select run_id, group_id, topic, "partition", min(from_ms) as first_ms, max(to_ms) as last_ms
          from closed group by all)
    full join wanted using (run_id, group_id, topic, "partition") join ends using (run_id)
)
select run_id, group_id, topic, "partition", 'owned' as kind, member_id, group_instance_id, client_id, node, from_ms,
    to_ms, to_ms - from_ms as length_ms, generation, "end",
    greatest(0, coalesce(least(furthest.to_ms, to_ms) - from_ms, 0)) as overlap_ms,
    case when furthest.to_ms > from_ms then furthest.owner end as overlaps_owner, source, seq, file, line
from overlapping
union all by name
select run_id, group_id, topic, "partition", 'gap' as kind, furthest.to_ms as from_ms, from_ms as to_ms,
    from_ms - furthest.to_ms as length_ms, 'between' as "end"
from overlapping where furthest.to_ms < from_ms
union all by name
select run_id, group_id, topic, "partition", 'gap' as kind, since_ms as from_ms, got_ms as to_ms,
    got_ms - since_ms as length_ms, 'initial' as "end"
from whole where since_ms < got_ms
union all by name
select run_id, group_id, topic, "partition", 'gap' as kind, last_ms as from_ms, ends_at_ms as to_ms,
    ends_at_ms - last_ms as length_ms, 'final' as "end"
from whole where last_ms < ends_at_ms
"""
