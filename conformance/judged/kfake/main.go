// A kfake broker on loopback that prints its address and serves until its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.SeedTopics(4, "orders"),
		kfake.SeedTopics(2, "payments"),
		kfake.GroupMinSessionTimeout(500*time.Millisecond),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}
