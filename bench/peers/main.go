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

// command runs one of the three roles: the tool, or the server and client processes that it starts.
func command(ctx context.Context, args []string) error {
	if len(args) == 1 {
		switch args[0] {
		case "server":
			return serve()
		case "client":
			return client(ctx)
		}
	}
	return compare(ctx, args)
}

// serve is a null server until standard input ends.
func serve() error {
	s, err := nullserver.Listen("127.0.0.1:0")
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
