// The Mutex of redsync; README.md tells what a peer is asked, and what it answers.
// usage: peer LIBRARY NAME TTL-MS SOCKET…
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	redigolib "github.com/gomodule/redigo/redis"
)

// The retry delay.
const retry = 30 * time.Millisecond

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Reads a number and writes one more; fails if another process is at it.
func countOnce(path string) {
	inside, err := os.OpenFile(path+".inside", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	must(err)
	must(inside.Close())
	text, err := os.ReadFile(path)
	must(err)
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(err)
	must(os.WriteFile(path, []byte(strconv.Itoa(number+1)), 0o600))
	log, err := os.OpenFile(path+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = log.WriteString("peer\n")
	must(err)
	must(log.Close())
	must(os.Remove(path + ".inside"))
}

func answer(happened bool, yes, no string) {
	if happened {
		fmt.Println(yes)
	} else {
		fmt.Println(no)
	}
}

func main() {
	name := os.Args[2]
	ttl, err := strconv.Atoi(os.Args[3])
	must(err)
	var pools []redis.Pool
	for _, socket := range os.Args[4:] {
		socket := socket
		pools = append(pools, redigo.NewPool(&redigolib.Pool{
			MaxIdle: 1,
			Dial:    func() (redigolib.Conn, error) { return redigolib.Dial("unix", socket) },
		}))
	}
	mutex := redsync.New(pools...).NewMutex(name,
		redsync.WithExpiry(time.Duration(ttl)*time.Millisecond),
		redsync.WithTries(math.MaxInt32),
		redsync.WithRetryDelay(retry))
	fmt.Println("ready", name, os.Getenv("PEER_REDSYNC"))

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "try":
			answer(mutex.TryLock() == nil, "held", "busy")
		case "wait":
			if mutex.TryLock() != nil {
				fmt.Println("waiting")
				must(mutex.Lock())
			}
			fmt.Println("held")
		case "extend":
			extended, _ := mutex.Extend()
			answer(extended, "extended", "lost")
		case "release":
			released, _ := mutex.Unlock()
			answer(released, "released", "lost")
		case "count":
			turns := 0
			for ; !exists(words[1] + ".enough"); turns++ {
				must(mutex.Lock())
				countOnce(words[1])
				_, err := mutex.Unlock()
				must(err)
			}
			fmt.Println("counted", turns)
		}
	}
}
