package main

const rootHelp = `jobsub submits jobs from a file or from standard input at full speed, and ends with an account of every
one of them: taken, refused, not sent, or maybe taken.

TARGETS
  redis://[user:password@]host:port/db?stream=NAME   a stream of a Redis or Valkey server; one entry per job,
                                                     with the fields id, queue and payload (default: stream=jobs)
  redis://[user:password@]host:port/db?list=NAME     a list; one element per job, put at the tail
  beanstalk://host:port/TUBE                         a tube of a beanstalkd
  embedded:                                          a server inside jobsub, gone with it: for trying things

  rediss:// is Redis over TLS. A list element or tube job is the payload as it is; with body=job behind the ? it is
  a JSON object with id, queue and payload. Tubes also take priority=N, delay=90s and ttr=60s there.

EXIT CODES
  0 every accepted job was taken (and, with --verify, found there once); 130 interrupted by SIGINT or SIGTERM;
  1 anything else.`

const submitHelp = `Submit the jobs of a file, or of standard input.

INPUT
  NDJSON, one object per line with the fields payload (any JSON, sent as it is written), id (string or whole number) and
  queue (string), or plain lines, each the payload of one job. Lines end with LF or CRLF; blank lines are no jobs.
  A line that is no job, or an object with other fields, is reported with its number and skipped. A job without id gets
  file name and line as one.

ONCE OR TWICE
  Jobs that bring an id are added to a Redis stream or list exactly once, however often they are sent: a script on
  the server notes the id in the set NAME:ids and adds the job only if it is new there. So they are sent again when a
  connection dies, and can be sent again after a crash. The account shows them as once=, and as known= those whose
  id was there already, from an earlier run, an earlier line or an earlier send; their payloads are not compared. The
  set is yours to delete when nothing will be sent again. The promise is the server's: it holds while its data does,
  so not over a failover that loses the last writes, nor over a crash without --appendonly.

  Jobs without an id, and all jobs for beanstalkd, which remembers none, are never sent again once they may have been
  taken: none is there twice, and those whose answer was lost are counted as maybe. With --retries N they are sent
  again: none is lost, some may be there twice.

RESUME
  With --resume STATEFILE the run writes down, line by line and synced to the disk, what may be sent and what was
  taken. Run the same command again after an interruption, a crash, a kill -9 or a refusal: lines that were taken
  are skipped, lines that certainly were not are sent. Lines that the killed run may have sent are sent again when
  their id protects them. Else they are looked for where the target shows them (streams, body=job), and skipped when
  they are there. What is not found is listed as maybe; --maybe resend sends it too. STATEFILE belongs to one
  input, one set of targets and one set of --format, --queue and --ids: anything else is refused. The input may have
  grown at its end.

ACCOUNT
  account: accepted=N answered=N not_sent=N maybe=N lost=N duplicated=N rate=N/s [once=N known=N] [earlier=N]

  accepted = answered + not_sent + maybe. lost and duplicated are known only with --verify, which reads the targets
  back; what workers have taken away meanwhile counts as lost. earlier= are jobs that earlier runs of --resume dealt
  with; --verify looks for these too. With several targets each has an account of its own before the last line.

  The account is the last line in any case, also when an option is wrong or no target answers. Each distinct reason why
  jobs were not taken is told once on standard error, with its number of jobs.

  Exit codes: 0 every accepted job was taken by the server (and, with --verify, none is lost, and none is there more
  often than --retries and --maybe resend account for); 1 anything else; 130 interrupted.`

const submitExample = `  jobsub submit --to 'redis://127.0.0.1:6379/0?stream=jobs' jobs.ndjson
  jobsub submit --to 'redis://127.0.0.1:6379/0?list=jobs' --resume jobs.state --report jobs.open jobs.ndjson
  jobsub submit --to beanstalk://127.0.0.1:11300/mail --to beanstalk://127.0.0.2:11300/mail --verify jobs.txt
  generate | jobsub submit --to 'redis://127.0.0.1:6379/0' --rate 500 -`

const benchHelp = `Submit generated jobs to TARGET and measure rate, latency and processor time.

Latency is from handing a job over to its outcome; at full speed most of it is the wait behind the other jobs in
flight, so for the latency under a certain load give --rate. Processor time is that of this process (with embedded:
the server's is in it) and covers making, reading, submitting and settling a job.

The jobs stay in the target: name a stream, list or tube that nobody works on, and delete it afterwards.`

const benchExample = `  jobsub bench 'redis://127.0.0.1:6379/0?stream=bench' --jobs 500000
  jobsub bench beanstalk://127.0.0.1:11300/bench --for 10s --rate 5000 --size 2000`
