package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

func Example() {
	o, err := redis.ParseURL("redis://localhost:6379/0?client_name=jobs")
	if err != nil {
		log.Fatal(err)
	}
	c, err := redis.New(o)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if err := c.Do(ctx, redis.RPush("jobs", "resize a.jpg")); err != nil {
		log.Fatal(err) // fdengine.FateOf(err) says whether it may have been pushed
	}
	get := redis.Get("greeting")
	if err := c.Do(ctx, get); err != nil {
		log.Fatal(err)
	}
	text, err := get.Text()
	if errors.Is(err, redis.Nil) {
		text = "there is no greeting"
	}
	fmt.Println(text)
}

// Many commands under way at once, waited for together.
func ExampleClient_Submit() {
	c, err := redis.New(redis.Options{Addr: "localhost:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	g := fdengine.NewGroup()
	g.Add(1000)
	for i := range 1000 {
		cmd := redis.Build("RPUSH").Arg("jobs").ArgInt(int64(i))
		if err := c.Submit(ctx, cmd, g); err != nil {
			g.Complete(cmd, err) // it was not sent
		}
	}
	if err := g.Wait(ctx); err != nil {
		log.Fatal(err) // the first error
	}
}

// Commands that are there together are submitted together, which is cheaper still.
func ExampleClient_SubmitBatch() {
	c, err := redis.New(redis.Options{Addr: "localhost:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var cmds []fdengine.Command
	for i := range 1000 {
		cmds = append(cmds, redis.Build("RPUSH").Arg("jobs").ArgInt(int64(i)))
	}
	ctx := context.Background()
	g := fdengine.NewGroup()
	g.Add(len(cmds))
	n, err := c.SubmitBatch(ctx, cmds, g)
	if err != nil {
		g.Add(n - len(cmds)) // the rest was not queued, and is not waited for
		log.Print(err)
	}
	if err := g.Wait(ctx); err != nil {
		log.Fatal(err) // the first error of those that were
	}
}

func ExampleClient_Blocking() {
	c, err := redis.New(redis.Options{Addr: "localhost:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	pop := redis.NewCmd("BLPOP", "jobs", 0)
	if err := c.Blocking(ctx, pop); err != nil {
		log.Fatal(err) // context.DeadlineExceeded: nothing was popped
	}
	job, err := pop.Strings()
	fmt.Println(job, err)
}

func ExampleClient_Watch() {
	c, err := redis.New(redis.Options{Addr: "localhost:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	double := func(tx *redis.WatchTx) error {
		get := redis.Get("n")
		if err := tx.Do(ctx, get); err != nil {
			return err
		}
		n, err := get.Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		return tx.Exec(ctx, redis.Build("SET").Arg("n").ArgInt(2*n))
	}
	for err = redis.ErrTxAborted; errors.Is(err, redis.ErrTxAborted); {
		err = c.Watch(ctx, double, "n")
	}
	fmt.Println(err)
}

func ExampleClient_Subscribe() {
	c, err := redis.New(redis.Options{Addr: "localhost:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sub, err := c.Subscribe(context.Background(), "news")
	if err != nil {
		log.Fatal(err)
	}
	for m := range sub.Channel() {
		if m.Missed != nil {
			fmt.Println("nothing heard from", m.Missed.From, "to", m.Missed.To)
			continue
		}
		fmt.Printf("%s: %s\n", m.Channel, m.Payload)
	}
	fmt.Println(sub.Err())
}
