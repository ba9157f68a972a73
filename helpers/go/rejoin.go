// Package rejoin gives tests a Kafka broker: started or found, reset before each test, driven over its control API.
//
// Copy this file into a package of your module, such as internal/rejoin; it needs the standard library alone. Its
// documentation is helpers/README.md of Rejoin.
//
//	func TestAMemberJoins(t *testing.T) {
//		broker := rejoin.New(t, rejoin.Options{Clock: "virtual", Topics: map[string]int{"orders": 3}})
//		client := ... // of any library, at broker.BootstrapServers
//		broker.WaitForGroup("orders-app", rejoin.Fields{"waiting": 1})
//		broker.Advance(3 * time.Second) // the initial rebalance delay
//		broker.WaitForGroup("orders-app", rejoin.Fields{"state": "Stable", "members": 1})
//	}
package rejoin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	startTime       = 2 * time.Minute // uvx may have to download it
	answerTime      = time.Minute     // beyond the time that a call may wait by itself
	whyTime         = time.Minute
	transcriptLines = 40
	mostGroups      = 3
)

// Fields are arguments by the names that the control API has for them.
type Fields map[string]any

// Options say how a broker starts. The clock is "real", "virtual" or "fast:5", and "real" unless given; topics have
// partition counts by name, and settings have values by their dotted names.
type Options struct {
	Clock    string
	Topics   map[string]int
	Settings map[string]string
}

// Member is a member of a Group.
type Member struct {
	MemberID        string           `json:"member_id"`
	GroupInstanceID *string          `json:"group_instance_id"`
	ClientID        string           `json:"client_id"`
	Assignment      map[string][]int `json:"assignment"`
	IsLeader        bool             `json:"is_leader"`
	AwaitingJoin    bool             `json:"awaiting_join"`
	AwaitingSync    bool             `json:"awaiting_sync"`
}

// Group is a group as it was when all conditions held.
type Group struct {
	GroupID    string   `json:"group_id"`
	State      string   `json:"state"`
	Generation int      `json:"generation"`
	Protocol   *string  `json:"protocol"`
	Leader     *string  `json:"leader"`
	Members    []Member `json:"members"`
}

// FiredTimer is a timer that fired while time passed, after so many ms.
type FiredTimer struct {
	Timer   string `json:"timer"`
	AfterMs int64  `json:"after_ms"`
	Group   string `json:"group"`
	Member  string `json:"member"`
}

// EmittedEvent is an event that was emitted while time passed.
type EmittedEvent struct {
	AfterMs int64  `json:"after_ms"`
	Event   string `json:"event"`
	Text    string `json:"text"`
}

// ClockAdvance says how far the clock moved, and what happened meanwhile.
type ClockAdvance struct {
	NowMs      int64          `json:"now_ms"`
	AdvancedMs int64          `json:"advanced_ms"`
	Reached    bool           `json:"reached"`
	Fired      []FiredTimer   `json:"fired"`
	Events     []EmittedEvent `json:"events"`
}

// Record is a record of a topic. A key or a value that is not UTF-8 is missing here.
type Record struct {
	Topic     string  `json:"topic"`
	Partition int     `json:"partition"`
	Offset    int64   `json:"offset"`
	Timestamp int64   `json:"timestamp"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
}

// Request is a request of a client with the response that arrived, or nil.
type Request struct {
	Mark     int64          `json:"mark"`
	API      string         `json:"api"`
	Version  int            `json:"version"`
	ClientID string         `json:"client_id"`
	Request  map[string]any `json:"request"`
	Response map[string]any `json:"response"`
}

// Offset is an offset that a group has committed, or has to commit.
type Offset struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
}

// NotReached is the error of a state that was not reached in time; the text has the last state.
type NotReached struct{ error }

// OperationRefused is the error of a broker that cannot be reached, or that refuses an operation.
type OperationRefused struct{ error }

// Rejoin is a broker as one test has it. Where a method fails, so does the test, and its output has what happened;
// Control returns the error instead.
type Rejoin struct {
	BootstrapServers string // the address for Kafka clients
	URL              string // the address of the control API
	t                testing.TB
	topics           map[string]int
}

// A broker that tests of this process share, one after another.
type shared struct {
	turn           sync.Mutex
	bootstrap, url string
	topics         map[string]int // those to be made after each reset
	input          io.Closer      // the broker ends with it: also where this process is killed
	holderLock     sync.Mutex
	holder         string
	startOnce      sync.Once
	problem        error
}

var (
	brokersLock sync.Mutex
	brokers     = map[string]*shared{}
)

// New returns the broker of REJOIN_URL, or else one that REJOIN_COMMAND, rejoin or uvx starts; it is reset. Tests with
// equal options share it, one after another. If the test fails, its output has the transcript and why.
func New(t testing.TB, options Options) *Rejoin {
	t.Helper()
	key := fmt.Sprint(options)
	brokersLock.Lock()
	broker := brokers[key]
	if broker == nil {
		broker = &shared{}
		brokers[key] = broker
	}
	brokersLock.Unlock()
	if holder := broker.heldBy(); holder != "" && strings.HasPrefix(t.Name()+"/", holder+"/") {
		t.Fatalf("rejoin.New: %s has this broker already; hand it to %s", holder, t.Name())
	}
	broker.turn.Lock()
	t.Cleanup(broker.turn.Unlock)
	broker.hold(t.Name())
	t.Cleanup(func() { broker.hold("") })
	broker.startOnce.Do(func() { broker.problem = broker.begin(options) })
	if broker.problem != nil {
		t.Fatalf("rejoin.New: %v", broker.problem)
	}
	made := &Rejoin{BootstrapServers: broker.bootstrap, URL: broker.url, t: t, topics: broker.topics}
	made.Reset()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(made.Evidence())
		}
	})
	return made
}

func (b *shared) heldBy() string {
	b.holderLock.Lock()
	defer b.holderLock.Unlock()
	return b.holder
}

func (b *shared) hold(name string) {
	b.holderLock.Lock()
	defer b.holderLock.Unlock()
	b.holder = name
}

func (b *shared) begin(options Options) error {
	if found := strings.TrimRight(os.Getenv("REJOIN_URL"), "/"); found != "" {
		return b.find(found, options)
	}
	return b.start(options)
}

func (b *shared) find(address string, options Options) error {
	var found struct {
		Clock     string `json:"clock"`
		Bootstrap string `json:"bootstrap_servers"`
	}
	broker := &Rejoin{URL: address}
	if err := broker.Control("GET", "/control", nil, &found); err != nil {
		return err
	}
	if options.Clock != "" && options.Clock != found.Clock {
		return fmt.Errorf("REJOIN_URL %s: its clock is %s; start it with --clock %s", address, found.Clock, options.Clock)
	}
	for name, value := range options.Settings {
		return fmt.Errorf("REJOIN_URL %s: a running broker takes no settings; start it with -c %s=%s", address, name, value)
	}
	b.url, b.bootstrap, b.topics = address, found.Bootstrap, options.Topics
	if given := os.Getenv("BOOTSTRAP_SERVERS"); given != "" {
		b.bootstrap = given
	}
	return nil
}

func (b *shared) start(options Options) error {
	folder, err := os.MkdirTemp("", "rejoin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ready := filepath.Join(folder, "ready.json")
	arguments := []string{"serve", "--control", "--port", "0", "--log-level", "error", "--ready-file", ready}
	arguments = append(arguments, "--evidence", filepath.Join(os.TempDir(), "rejoin-evidence"))
	if options.Clock != "" {
		arguments = append(arguments, "--clock", options.Clock)
	}
	for topic, partitions := range options.Topics {
		arguments = append(arguments, "--topic", fmt.Sprintf("%s:%d", topic, partitions))
	}
	for name, value := range options.Settings {
		arguments = append(arguments, "-c", name+"="+value)
	}
	arguments = append(arguments, "--", "cat") // it ends with its input, and the broker with it
	for _, line := range commands() {
		command := words(line)
		log, err := os.Create(filepath.Join(folder, "log"))
		if err != nil {
			return err
		}
		process := exec.Command(command[0], append(command[1:], arguments...)...)
		process.Stdout, process.Stderr = log, log
		b.input, _ = process.StdinPipe()
		err = process.Start()
		log.Close()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			if os.Getenv("REJOIN_COMMAND") == "" {
				continue
			}
			return fmt.Errorf("%s serve: command not found; REJOIN_COMMAND names it", line)
		} else if err != nil {
			return fmt.Errorf("%s serve: %w", line, err)
		}
		ended := make(chan error, 1)
		go func() { ended <- process.Wait() }()
		said, end := fmt.Sprintf("not ready within %v", startTime), time.Now().Add(startTime)
		for running := true; running && time.Now().Before(end); {
			if b.readReady(ready) {
				return nil
			}
			select {
			case err := <-ended:
				said, running = fmt.Sprint(err), false
			case <-time.After(20 * time.Millisecond):
			}
		}
		_ = process.Process.Kill()
		output, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s serve: %s:\n%s\nREJOIN_COMMAND may name another command", line, said, lastLines(string(output), 10))
	}
	return errors.New("neither rejoin nor uvx was found: pip install rejoin-kafka, or set REJOIN_COMMAND or REJOIN_URL")
}

func (b *shared) readReady(file string) bool {
	var addresses struct {
		Bootstrap string `json:"bootstrap_servers"`
		URL       string `json:"url"`
	}
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &addresses) != nil {
		return false
	}
	b.bootstrap, b.url = addresses.Bootstrap, addresses.URL
	return true
}

func commands() []string {
	if given := os.Getenv("REJOIN_COMMAND"); given != "" {
		return []string{given}
	}
	return []string{"rejoin", "uvx --from rejoin-kafka rejoin"}
}

var word = regexp.MustCompile(`"[^"]*"|\S+`)

// The words of a command line; double quotes keep spaces.
func words(line string) []string {
	found := word.FindAllString(line, -1)
	for index, each := range found {
		found[index] = strings.Trim(each, `"`)
	}
	return found
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > count {
		lines = append([]string{fmt.Sprintf("(%d earlier lines)", len(lines)-count)}, lines[len(lines)-count:]...)
	}
	return strings.Join(lines, "\n")
}

// Evidence has the last lines of the transcript, and why each group rebalanced. Failed tests print it.
func (r *Rejoin) Evidence() string {
	var text string
	var all struct {
		Groups []struct {
			GroupID string `json:"groupId"`
		} `json:"groups"`
	}
	err := r.Control("GET", "/control/transcript", nil, &text)
	if err == nil {
		err = r.Control("GET", "/groups", nil, &all)
	}
	if err != nil {
		return "Rejoin's transcript: " + err.Error()
	}
	parts := []string{"Rejoin's transcript:", lastLines(text, transcriptLines), ""}
	for _, each := range all.Groups[:min(len(all.Groups), mostGroups)] {
		parts = append(parts, r.Why(each.GroupID))
	}
	return strings.Join(parts, "\n")
}

// Why is the output of rejoin why: why a group rebalanced, in ten lines.
func (r *Rejoin) Why(group string) string {
	for _, line := range commands() {
		command := append(words(line), "why", "--bootstrap-server", r.URL, "--", group)
		ctx, cancel := context.WithTimeout(context.Background(), whyTime)
		output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		cancel()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			continue
		} else if len(output) > 0 {
			return strings.TrimSpace(string(output))
		}
		return fmt.Sprintf("rejoin why %s: %v", group, err)
	}
	return fmt.Sprintf("rejoin why %s: %s: command not found", group, strings.Join(commands(), " or "))
}

// NowMs is the time on the broker's clock.
func (r *Rejoin) NowMs() int64 {
	r.t.Helper()
	var answer struct {
		NowMs int64 `json:"now_ms"`
	}
	r.must("GET", "/control/clock", nil, &answer)
	return answer.NowMs
}

// WaitForGroup waits until all conditions hold, and returns the group: state, members, assigned, generation, waiting;
// timeout_ms is 10,000 unless given.
func (r *Rejoin) WaitForGroup(group string, conditions Fields) Group {
	r.t.Helper()
	var answer struct {
		Group Group `json:"group"`
	}
	r.must("POST", "/control/groups/wait", with(Fields{"group": group}, conditions), &answer)
	return answer.Group
}

// Advance moves the clock by a time; it returns the timers that fired and the events.
func (r *Rejoin) Advance(by time.Duration) ClockAdvance {
	r.t.Helper()
	var answer ClockAdvance
	r.must("POST", "/control/clock", Fields{"advance_ms": by.Milliseconds()}, &answer)
	return answer
}

// AdvanceToNext moves the clock to the next timer.
func (r *Rejoin) AdvanceToNext() ClockAdvance {
	r.t.Helper()
	var answer ClockAdvance
	r.must("POST", "/control/clock", Fields{"until": "next"}, &answer)
	return answer
}

// AdvanceUntilIdle moves the clock until only timers are left that always come back.
func (r *Rejoin) AdvanceUntilIdle() ClockAdvance {
	r.t.Helper()
	var answer ClockAdvance
	r.must("POST", "/control/clock", Fields{"until": "idle"}, &answer)
	return answer
}

// AddFault adds a fault rule, such as Fields{"keys": "Heartbeat", "error": "NOT_COORDINATOR", "count": 2}.
func (r *Rejoin) AddFault(fields Fields) *Fault {
	r.t.Helper()
	var answer faultAnswer
	r.must("POST", "/control/faults", fields, &answer)
	return &Fault{ID: answer.ID, rejoin: r}
}

// ClearFaults removes every fault rule.
func (r *Rejoin) ClearFaults() {
	r.t.Helper()
	r.must("DELETE", "/control/faults", nil, nil)
}

type memberAnswer struct {
	Member string `json:"member"`
}

type leadingAnswer struct {
	Partition int `json:"partition"`
}

// Expire ends a member's session now, and returns its id; member, instance or client_id names the member.
func (r *Rejoin) Expire(group string, member Fields) string {
	r.t.Helper()
	var answer memberAnswer
	r.must("POST", "/control/groups/expire", with(Fields{"group": group}, member), &answer)
	return answer.Member
}

// Kick removes a member as an administrator does, and returns its id.
func (r *Rejoin) Kick(group string, member Fields) string {
	r.t.Helper()
	var answer memberAnswer
	r.must("POST", "/control/groups/kick", with(Fields{"group": group}, member), &answer)
	return answer.Member
}

type addressAnswer struct {
	BootstrapServers string `json:"bootstrap_servers"`
}

// Advertise sends clients of a listener to another address, such as a mapped port, and returns the addresses for clients.
// An empty listener is the first one.
func (r *Rejoin) Advertise(host string, port int, listener string) string {
	r.t.Helper()
	address := Fields{"host": host, "port": port}
	if listener != "" {
		address["listener"] = listener
	}
	var answer addressAnswer
	r.must("POST", "/control/advertise", address, &answer)
	return answer.BootstrapServers
}

// Resign takes the offsets partition of a group away from the broker, and returns its number.
func (r *Rejoin) Resign(group string) int {
	r.t.Helper()
	var answer leadingAnswer
	r.must("POST", "/control/partitions/resign", Fields{"group": group}, &answer)
	return answer.Partition
}

// Elect gives the offsets partition of a group back, loaded from the log.
func (r *Rejoin) Elect(group string) int {
	r.t.Helper()
	var answer leadingAnswer
	r.must("POST", "/control/partitions/elect", Fields{"group": group}, &answer)
	return answer.Partition
}

// SetTopic creates a topic, or adds partitions.
func (r *Rejoin) SetTopic(topic string, partitions int) {
	r.t.Helper()
	r.must("POST", "/control/topics", Fields{"topic": topic, "partitions": partitions}, nil)
}

// DeleteTopic deletes a topic with its records.
func (r *Rejoin) DeleteTopic(topic string) {
	r.t.Helper()
	r.must("POST", "/control/topics/delete", Fields{"topic": topic}, nil)
}

// Produce writes records: a list of values, of pairs of key and value, or of Fields with key, value, headers and
// timestamp; or a number of records, each with a value of its own. A partition of nil leaves it to the keys; with a
// number it means every partition.
func (r *Rejoin) Produce(topic string, partition any, records any) {
	r.t.Helper()
	r.must("POST", "/control/topics/produce", Fields{"topic": topic, "partition": partition, "records": records}, nil)
}

// Compact compacts the logs of a topic now, and returns the names of the topics.
func (r *Rejoin) Compact(topic string) []string {
	r.t.Helper()
	var answer struct {
		Topics []string `json:"topics"`
	}
	r.must("POST", "/control/topics/compact", Fields{"topic": topic}, &answer)
	return answer.Topics
}

// Records returns the records of a topic, in the order of partitions.
func (r *Rejoin) Records(topic string) []Record {
	r.t.Helper()
	var answer struct {
		Records []Record `json:"records"`
	}
	r.must("GET", "/control/topics/records", Fields{"topic": topic}, &answer)
	return answer.Records
}

// Requests returns requests of clients with their responses; api, client_id and since choose some.
func (r *Rejoin) Requests(query Fields) []Request {
	r.t.Helper()
	var answer struct {
		Requests []Request `json:"requests"`
	}
	r.must("GET", "/control/requests", query, &answer)
	return answer.Requests
}

// WaitForCommitted waits until a group has committed these offsets or later ones, and returns all that it has committed.
func (r *Rejoin) WaitForCommitted(group string, offsets []Offset) []Offset {
	r.t.Helper()
	var answer struct {
		Offsets []Offset `json:"offsets"`
	}
	r.must("POST", "/control/offsets/wait", Fields{"group": group, "offsets": offsets}, &answer)
	return answer.Offsets
}

// WaitForShareGroup waits until a share group has so many members, records acquired by them, and records available for their
// next delivery, of one topic if it is given; it returns the share-partitions.
func (r *Rejoin) WaitForShareGroup(group string, conditions Fields) []Fields {
	r.t.Helper()
	var answer struct {
		SharePartitions []Fields `json:"share_partitions"`
	}
	r.must("POST", "/control/share-groups/wait", with(Fields{"group": group}, conditions), &answer)
	return answer.SharePartitions
}

// WaitForStreamsGroup waits until a streams group has a state, so many members, tasks and standbys; it returns the group, whose
// "tasks" have their members.
func (r *Rejoin) WaitForStreamsGroup(group string, conditions Fields) Fields {
	r.t.Helper()
	var answer struct {
		Group Fields `json:"group"`
	}
	r.must("POST", "/control/streams-groups/wait", with(Fields{"group": group}, conditions), &answer)
	return answer.Group
}

// Snapshot saves the whole state, and returns its name.
func (r *Rejoin) Snapshot() string {
	r.t.Helper()
	var answer struct {
		Snapshot string `json:"snapshot"`
	}
	r.must("POST", "/control/snapshot", nil, &answer)
	return answer.Snapshot
}

// Restore restores a snapshot, the time included.
func (r *Rejoin) Restore(snapshot string) {
	r.t.Helper()
	r.must("POST", "/control/restore", Fields{"snapshot": snapshot}, nil)
}

// Reset starts over: no groups, offsets or faults, and the topics of the start.
func (r *Rejoin) Reset() {
	r.t.Helper()
	r.must("POST", "/control/reset", nil, nil)
	for topic, partitions := range r.topics {
		r.SetTopic(topic, partitions)
	}
}

// Mark is the mark of this moment, for since.
func (r *Rejoin) Mark() int64 {
	r.t.Helper()
	var answer struct {
		Mark int64 `json:"mark"`
	}
	r.must("GET", "/control/mark", nil, &answer)
	return answer.Mark
}

// Transcript is what happened since a mark, or since 0, as a transcript.
func (r *Rejoin) Transcript(since int64) string {
	r.t.Helper()
	var text string
	r.must("GET", "/control/transcript", Fields{"since": since}, &text)
	return text
}

// Fault is a fault rule of a test.
type Fault struct {
	ID     string
	rejoin *Rejoin
}

type faultAnswer struct {
	ID   string `json:"id"`
	Hits int    `json:"hits"`
}

// Hits says how many requests it was applied to.
func (f *Fault) Hits() int {
	f.rejoin.t.Helper()
	var answer faultAnswer
	f.rejoin.must("GET", "/control/faults/"+f.ID, nil, &answer)
	return answer.Hits
}

// Wait waits until it was applied to so many requests.
func (f *Fault) Wait(hits int) {
	f.rejoin.t.Helper()
	f.rejoin.must("POST", "/control/faults/"+f.ID+"/wait", Fields{"hits": hits}, nil)
}

// Release lets the requests go that a rule with pause holds.
func (f *Fault) Release() {
	f.rejoin.t.Helper()
	f.rejoin.must("POST", "/control/faults/"+f.ID+"/release", nil, nil)
}

// Remove removes the rule, and lets the requests go that it holds.
func (f *Fault) Remove() {
	f.rejoin.t.Helper()
	f.rejoin.must("DELETE", "/control/faults/"+f.ID, nil, nil)
}

func with(fields, others Fields) Fields {
	for name, value := range others {
		fields[name] = value
	}
	return fields
}

func (r *Rejoin) must(method, path string, fields Fields, answer any) {
	r.t.Helper()
	if err := r.Control(method, path, fields, answer); err != nil {
		r.t.Fatalf("rejoin: %v", err)
	}
}

// Control makes one call of the control API, and reads its answer into a variable, unless it is nil; an answer that is
// text needs a *string. Fields of a GET are its query. The error is NotReached or OperationRefused.
func (r *Rejoin) Control(method, path string, fields Fields, answer any) error {
	target, body := r.URL+path, []byte(nil)
	if method == http.MethodPost {
		if fields == nil {
			fields = Fields{}
		}
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return OperationRefused{err}
		}
	} else if len(fields) > 0 {
		query := url.Values{}
		for name, value := range fields {
			query.Set(name, fmt.Sprint(value))
		}
		target += "?" + query.Encode()
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime+waitingTime(fields))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return OperationRefused{fmt.Errorf("REJOIN_URL %s: %w", r.URL, err)}
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	if token := os.Getenv("REJOIN_CONTROL_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	var text []byte
	if err == nil {
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
	}
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return OperationRefused{fmt.Errorf("%s does not answer (%w); expected rejoin serve --control there", r.URL, err)}
	}
	if response.StatusCode != http.StatusOK {
		return r.problem(response.StatusCode, target, text)
	}
	if answer == nil {
		return nil
	} else if whole, isText := answer.(*string); isText {
		*whole = string(text)
		return nil
	}
	return json.Unmarshal(text, answer)
}

func (r *Rejoin) problem(status int, target string, text []byte) error {
	var problem struct {
		Type   string `json:"type"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(text, &problem) != nil {
		problem.Detail = fmt.Sprintf("%d %.200s", status, text)
	}
	switch {
	case status == http.StatusUnauthorized:
		return OperationRefused{fmt.Errorf("%s refuses the token of REJOIN_CONTROL_TOKEN", r.URL)}
	case strings.HasSuffix(problem.Type, ":unknown-route"):
		return OperationRefused{fmt.Errorf("%s is not there: %s must be a node of rejoin serve --control", target, r.URL)}
	case strings.HasSuffix(problem.Type, ":not-reached"):
		return NotReached{errors.New(problem.Detail)}
	}
	return OperationRefused{errors.New(problem.Detail)}
}

// The time that a call may wait by itself.
func waitingTime(fields Fields) time.Duration {
	var millis int64
	_, _ = fmt.Sscan(fmt.Sprint(fields["timeout_ms"]), &millis)
	return time.Duration(millis) * time.Millisecond
}
