package steps

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Settings reads NAME=VALUE pairs.
func Settings(pairs []string) map[string]string {
	settings := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		settings[name] = value
	}
	return settings
}

// Millis is a setting that ends in .ms.
func Millis(value string) time.Duration {
	number, err := strconv.Atoi(value)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

// ReadSleeps passes on how long the handler is to take, from lines such as "sleep 20".
func ReadSleeps(sleeps chan<- time.Duration) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "sleep" {
			sleeps <- Millis(words[1]) * 1000
		}
	}
}

// Processed prints a record as rejoin conform-client reads it, if the settings have "processed=true".
func Processed(settings map[string]string, topic string, partition int32, offset int64) {
	if settings["processed"] == "true" {
		fmt.Println("processed", topic, partition, offset)
	}
}
