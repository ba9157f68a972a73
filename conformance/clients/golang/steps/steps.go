// Package steps runs the steps of a client's life, and prints one line of JSON for each.
package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// What every life deals with.
const (
	Partitions = 4
	Records    = 110
	Patience   = 30 * time.Second
)

// Count prints a number that a step has counted.
func Count(what string, number int) {
	text, _ := json.Marshal(map[string]any{"count": what, "number": number})
	fmt.Println(string(text))
}

type line struct {
	Step    string `json:"step"`
	Passed  bool   `json:"passed"`
	Problem string `json:"problem"`
}

// Step runs one step and prints how it went.
func Step(name string, work func() error) {
	problem := ""
	done := make(chan error, 1)
	go func() {
		defer func() {
			if panicked := recover(); panicked != nil {
				done <- fmt.Errorf("panic: %v", panicked)
			}
		}()
		done <- work()
	}()
	select {
	case err := <-done:
		if err != nil {
			problem = err.Error()
		}
	case <-time.After(2 * Patience):
		problem = "no end after a minute"
	}
	text, _ := json.Marshal(line{name, problem == "", problem})
	fmt.Println(string(text))
}

// Servers are the nodes of the cluster, from the command line: HOST:PORT,HOST:PORT.
func Servers() []string {
	return strings.Split(os.Args[1], ",")
}

// Patient returns a context that ends when patience does.
func Patient() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(Patience, cancel)
	return ctx
}

// Expect compares two values.
func Expect[T comparable](what string, found, wanted T) error {
	if found != wanted {
		return fmt.Errorf("%s: expected %v, got %v", what, wanted, found)
	}
	return nil
}

// Await waits until a condition holds.
func Await(what string, condition func() bool) error {
	end := time.Now().Add(Patience)
	for !condition() {
		if time.Now().After(end) {
			return fmt.Errorf("never: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// First returns the first error there is.
func First(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// Shared reports whether every partition has one owner and every member at least one partition.
func Shared(assigned [][]int32, partitions int) bool {
	owners := map[int32]int{}
	for _, mine := range assigned {
		if len(mine) == 0 {
			return false
		}
		for _, partition := range mine {
			owners[partition]++
		}
	}
	for _, count := range owners {
		if count != 1 {
			return false
		}
	}
	return len(owners) == partitions
}
