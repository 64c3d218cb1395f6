// Command peers measures the engine of this repository beside other clients, in the same run and on the same
// machine, and says for each bar whether it holds. It knows the command line; what is compared is in contend, how
// one cell is measured in load, which cells and bars there are in plan, the order of a run in run, and what is
// written in report.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/delay"
	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// command runs one of the roles: the tool, or the servers, proxies and clients that it starts.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch role, rest := args[0], args[1:]; {
		case role == "server" && len(rest) == 0:
			return serve(nullserver.Listen("127.0.0.1:0"))
		case role == "server" && len(rest) == 1:
			return slow(rest[0])
		case role == "delay" && len(rest) == 2:
			return proxy(rest[0], rest[1])
		case role == "client" && len(rest) == 0:
			return client(ctx)
		}
	}
	return compare(ctx, args)
}

// slow is a null server that reads so many bytes a second.
func slow(pace string) error {
	n, err := strconv.Atoi(pace)
	if err != nil {
		return err
	}
	return serve(nullserver.ListenSlow("127.0.0.1:0", n))
}

// proxy delays what goes to target and back by rtt together.
func proxy(target, rtt string) error {
	d, err := time.ParseDuration(rtt)
	if err != nil {
		return err
	}
	return serve(delay.Listen("127.0.0.1:0", target, d))
}

// serve says the address of a server and lets it serve until standard input ends.
func serve[S interface {
	Addr() string
	Close() error
}](s S, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Println(s.Addr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// client runs the cell that standard input describes.
func client(ctx context.Context) error {
	var s load.Spec
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	r, err := load.Run(ctx, s)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
