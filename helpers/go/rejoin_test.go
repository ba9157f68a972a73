package rejoin

// The helper with a member of its own and without a Kafka client: go test, with REJOIN_COMMAND or rejoin on the path.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

var virtual = Options{Clock: "virtual", Topics: map[string]int{"orders": 3}}

type joined struct {
	MemberID     string `json:"memberId"`
	GenerationID int    `json:"generationId"`
	ErrorCode    int    `json:"errorCode"`
}

func join(r *Rejoin, memberID string) (answer joined) {
	body := fmt.Sprintf(`{"groupId": "orders-app", "sessionTimeoutMs": 45000, "rebalanceTimeoutMs": 300000, "memberId": %q,
		"groupInstanceId": null, "protocolType": "consumer", "reason": null,
		"protocols": [{"name": "range", "metadata": "AAAAAAABAAZvcmRlcnP/////"}]}`, memberID)
	request, _ := http.NewRequest("POST", r.URL+"/v1/join-group", bytes.NewReader([]byte(body)))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Kafka-Client-Id", "one")
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = json.NewDecoder(response.Body).Decode(&answer)
	}
	return answer
}

// A member that has joined: its answer comes after the initial rebalance delay.
func member(r *Rejoin) joined {
	first := join(r, "")
	answer := make(chan joined, 1)
	go func() { answer <- join(r, first.MemberID) }()
	r.WaitForGroup("orders-app", Fields{"waiting": 1})
	r.Advance(3 * time.Second)
	return <-answer
}

func equal(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found %v, expected %v", found, expected)
	}
}

func TestAMemberIsRemovedWhenItsSessionHasPassed(t *testing.T) {
	r := New(t, virtual)
	equal(t, member(r).GenerationID, 1)
	equal(t, len(r.WaitForGroup("orders-app", Fields{"state": "CompletingRebalance"}).Members), 1)
	before := r.NowMs()
	r.AdvanceUntilIdle()
	equal(t, r.NowMs() > before, true)
	r.WaitForGroup("orders-app", Fields{"state": "Empty", "members": 0})
}

func TestEachTestBeginsAnew(t *testing.T) {
	r := New(t, virtual)
	equal(t, len(r.Records("orders")), 0)
	var reached NotReached
	err := r.Control("POST", "/control/groups/wait", Fields{"group": "orders-app", "timeout_ms": 1}, nil)
	equal(t, errors.As(err, &reached), true)
}

func TestAShareGroupThatHasNoRecordsToHoldIsNotReached(t *testing.T) {
	r := New(t, virtual)
	wanted := Fields{"members": 1, "acquired": 2, "available": 0, "topic": "orders", "timeout_ms": 1}
	said := failure(func(t testing.TB) { (&Rejoin{URL: r.URL, t: t}).WaitForShareGroup("orders-share", wanted) })
	equal(t, strings.Contains(said, "orders-share"), true)
}

func TestAStreamsGroupThatIsNotThereIsNotReached(t *testing.T) {
	r := New(t, virtual)
	wanted := Fields{"state": "Stable", "tasks": 6, "timeout_ms": 1}
	said := failure(func(t testing.TB) { (&Rejoin{URL: r.URL, t: t}).WaitForStreamsGroup("words", wanted) })
	equal(t, strings.Contains(said, "6 tasks"), true)
	r.SetTopic("lines", 1)
	r.DeleteTopic("lines")
}

func TestFaultsAreAppliedAwaitedAndRemoved(t *testing.T) {
	r := New(t, virtual)
	fault := r.AddFault(Fields{"keys": "JoinGroup", "error": "COORDINATOR_NOT_AVAILABLE"})
	equal(t, join(r, "").ErrorCode, 15)
	fault.Wait(1)
	equal(t, fault.Hits(), 1)
	fault.Remove()
	paused, held := r.AddFault(Fields{"keys": "JoinGroup", "pause": true}), make(chan joined, 1)
	go func() { held <- join(r, "") }()
	paused.Wait(1)
	paused.Release()
	equal(t, (<-held).ErrorCode, 79)
	r.ClearFaults()
	equal(t, len(r.Requests(Fields{"api": "JoinGroup", "client_id": "one"})), 2)
	equal(t, strings.Contains(r.Transcript(0), "JoinGroup"), true)
}

func TestTopicsGrowAndHaveRecords(t *testing.T) {
	r := New(t, virtual)
	r.SetTopic("orders", 4)
	r.Produce("orders", 0, []any{"a", []string{"k", "b"}})
	r.Produce("orders", nil, 1)
	found := r.Records("orders")
	equal(t, []string{*found[0].Value, *found[1].Key, *found[1].Value, *found[5].Value}, []string{"a", "k", "b", "orders-3@0"})
}

func TestSnapshotsTakeTheTimeBack(t *testing.T) {
	r := New(t, virtual)
	saved, now := r.Snapshot(), r.NowMs()
	r.AdvanceToNext()
	r.Restore(saved)
	equal(t, r.NowMs(), now)
	equal(t, r.Mark() >= 1, true)
}

func TestAMemberIsExpiredAndTheCoordinatorMoves(t *testing.T) {
	r := New(t, virtual)
	found := member(r)
	equal(t, r.Resign("orders-app"), r.Elect("orders-app"))
	equal(t, r.WaitForGroup("orders-app", nil).GroupID, "orders-app")
	if message := failure(func(t testing.TB) { (&Rejoin{URL: r.URL, t: t}).Kick("orders-app", Fields{"instance": "none"}) }); message == "" {
		t.Fatalf("kicked a member that is not there, beside %s", found.MemberID)
	}
}

func TestClientsAreSentToAnAddressThatIsSet(t *testing.T) {
	r := New(t, virtual)
	host, digits, err := net.SplitHostPort(r.BootstrapServers)
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(digits)
	equal(t, r.Advertise(host, port, ""), r.BootstrapServers)
	equal(t, r.Advertise(host, port, "PLAINTEXT"), r.BootstrapServers)
	if message := failure(func(t testing.TB) { (&Rejoin{URL: r.URL, t: t}).Advertise("broker", port, "NONE") }); message == "" {
		t.Fatal("advertised an address for a listener that is not there")
	}
}

func TestTheOutputOfAFailedTestHasTheTranscriptAndWhy(t *testing.T) {
	r := New(t, virtual)
	member(r)
	said := failure(func(t testing.TB) {
		(&Rejoin{URL: r.URL, t: t}).WaitForGroup("orders-app", Fields{"members": 2, "timeout_ms": 1})
	}) + r.Evidence()
	for _, part := range []string{"orders-app' did not have 2 members", "Rejoin's transcript:", "JoinGroup", "group    orders-app"} {
		if !strings.Contains(said, part) {
			t.Errorf("%s is missing from %s", part, said)
		}
	}
}

func TestARefusedTokenIsNamed(t *testing.T) {
	given := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	t.Setenv("REJOIN_URL", server.URL)
	t.Setenv("REJOIN_CONTROL_TOKEN", "wrong")
	err := (&shared{}).begin(Options{})
	equal(t, fmt.Sprint(err), server.URL+" refuses the token of REJOIN_CONTROL_TOKEN")
	equal(t, given, "Bearer wrong")
}

func TestAWrongAddressCommandClockOrSettingIsNamedInASentence(t *testing.T) {
	r := New(t, virtual)
	for _, each := range []struct {
		url, command string
		options      Options
		said         string
	}{
		{url: "http://127.0.0.1:9", said: "http://127.0.0.1:9 does not answer ("},
		{command: "no-such-command", said: "no-such-command serve: command not found"},
		{options: Options{Clock: "wrong"}, said: "--clock"},
		{url: r.URL + "/nothing", said: "must be a node of rejoin serve --control"},
		{url: r.URL, options: Options{Clock: "real"}, said: "its clock is virtual; start it with --clock real"},
		{url: r.URL, options: Options{Settings: map[string]string{"group.max.size": "3"}}, said: "start it with -c group.max.size=3"},
	} {
		t.Setenv("REJOIN_URL", each.url)
		if each.command != "" {
			t.Setenv("REJOIN_COMMAND", each.command)
		} else {
			t.Setenv("REJOIN_COMMAND", command)
		}
		if err := (&shared{}).begin(each.options); err == nil || !strings.Contains(err.Error(), each.said) {
			t.Errorf("%v: %v", each, err)
		}
	}
	t.Setenv("REJOIN_COMMAND", command)
	if said := failure(func(t testing.TB) { New(t, virtual) }); !strings.Contains(said, "has this broker already") {
		t.Error(said)
	}
}

// The environment's command, before a test sets another one.
var command = os.Getenv("REJOIN_COMMAND")

// A test whose failure is looked at.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}
func (r *recorder) Name() string {
	return "TestAWrongAddressCommandClockOrSettingIsNamedInASentence/part"
}
func (r *recorder) Fatalf(format string, a ...any) { r.said = fmt.Sprintf(format, a...); panic(r) }

func failure(body func(testing.TB)) (said string) {
	found := &recorder{}
	defer func() {
		if recover() == found {
			said = found.said
		}
	}()
	body(found)
	return ""
}
