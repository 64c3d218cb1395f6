package beanstalkd_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
)

func ExampleClient() {
	c, err := beanstalkd.New(beanstalkd.Options{Addr: "127.0.0.1:11300", Tube: "thumbnails"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	job := &beanstalkd.Put{Body: []byte("cat.jpg"), Priority: 1024, TTR: time.Minute}
	id, err := c.Put(context.Background(), job)
	switch {
	case err == nil && job.Buried:
		fmt.Println("stored, but somebody must kick it:", id)
	case err == nil:
		fmt.Println("stored:", id)
	case errors.Is(err, fdengine.ErrNotSent):
		fmt.Println("not stored, for certain:", err)
	case errors.Is(err, fdengine.ErrMaybeExecuted):
		fmt.Println("may have been stored:", err)
	default:
		fmt.Println("refused:", err)
	}
}

func ExampleConsumer() {
	c, err := beanstalkd.NewConsumer(beanstalkd.Options{Addr: "127.0.0.1:11300"}, "thumbnails")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	for {
		job, err := c.ReserveWithTimeout(ctx, 10*time.Second)
		if errors.Is(err, beanstalkd.ErrTimedOut) {
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		work(job.Body)
		if err := job.Delete(ctx); errors.Is(err, beanstalkd.ErrReservationLost) {
			fmt.Println("somebody else may do it again:", job.ID)
		}
	}
}

func work([]byte) {}
