package main

import "context"

func compare(ctx context.Context, args []string) error { return nil }
