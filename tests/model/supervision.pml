/*
 * The supervision of `run`: the front process (Front), the holder process (Holder), the command
 * with one descendant, and the lease at the servers.
 *
 * Checked: while a process of the command runs, the lease stands, neither expired nor released (a
 * descendant that the command left behind by ending itself is outside the promise). And everything
 * ends: where nothing can happen any more, both guards are gone, and nothing that was to be stopped
 * is left.
 *
 * Time is counted in ticks of a quarter margin. It passes only when no guard that can act has
 * something to do; a killed process may take a tick to die. Everything else interleaves freely:
 * after each step of a guard it may be paused (SIGSTOP, later SIGCONT) or killed (SIGKILL); while
 * one guard is paused or dead, the other is sound. A renewal may be lost on its way, take effect
 * unseen, or be confirmed, at any time within its timeout.
 *
 * Not modelled: signals of the user, --on-lost term and warn, processes that cannot be killed, a
 * lock deleted at the servers; and how long anything takes: here a guard that has something to do
 * always gets to do it before time passes. What a loaded machine, a large tree or a growing margin
 * change is measured instead (tests/load). Nor that the front process kills beside a holder that
 * does so, a quarter of the margin after it: that lets nothing live longer. It takes over at
 * FRONT_KILL_AT.
 *
 * Each of these macros changes the design or the faults; run.sh says what must come of it:
 *   NO_WATCHDOG          the front process watches no deadline
 *   FRONT_KILLS_LATE     the front process kills at the deadline, not half a margin before it
 *   RELEASE_EARLY        the holder process releases when it has sent KILL, without waiting for the
 *                        death
 *   KILL_COMMAND_ONLY    the holder process kills and awaits the command alone, not the tree
 *   DEADLINE_FROM_REPLY  the deadline counts from the reply, not from the question
 *   DEADLINE_AFTER_GO    the page has the deadline only when the command starts, after the front
 *                        process went to sleep
 *   STOP_UNTOLD          the front process does not tell the holder process that it has sent the
 *                        stop signal
 *   FRONT_UNSEEN         when the command ends, the holder process does not ask whether the front
 *                        process was killed before
 *   NO_PDEATHSIG, NO_GETPPID   the command does not die with its parent; does not look whether it
 *                        is dead already
 *   BOTH_KILLED, BOTH_STOPPED  faults may hit both guards at once
 *   COMMAND_ONLY         demand it of the command itself only, not of its descendant
 *   PAUSES, KILLS, RENEWALS    how many there may be
 */

#ifndef PAUSES
#define PAUSES 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif

#define TTL 8
#define GRACE 1
#define MARGIN 4
#define TIMEOUT 1                         /* of a renewal */
#define NONE 255

#define RENEW_AT (TTL - TTL / 3)
/* deadline - grace - margin: the holder process's stop signal */
#define STOP_AT (GRACE + MARGIN)
#define FRONT_STOP_AT (STOP_AT - 1)       /* the front process's, a quarter of the margin later */
#define KILL_AT MARGIN                    /* the holder process's KILL */
#ifdef FRONT_KILLS_LATE
#define FRONT_KILL_AT 0
#else
/* the front process takes over from a holder process that makes no progress */
#define FRONT_KILL_AT (MARGIN / 2)
#endif

mtype = { ALIVE, STOPPED, DEAD, ENDED };                    /* a guard; DEAD: killed */
/* a process of the command; READY: waits at the gate */
mtype = { ABSENT, FORKED, READY, RUNNING, DYING, GONE };
mtype = { GRANTED, GO, WAITING, STARTED, REPORT };          /* messages */
mtype = { NOTHING, ASKED, APPLIED };                        /* a renewal */

mtype front = ALIVE, holder = ALIVE;
mtype command = ABSENT, descendant = ABSENT;
/* the command and its descendant ignore the stop signal, and never end by themselves */
bool endless;
bool slow;                      /* something has been dying for a tick */
bool gate;                      /* the byte that lets the command start */

byte lease;                     /* ticks until a quorum of servers has let it expire; 0: free */
mtype renewal = NOTHING;
/* ticks until the deadline that the question under way, or just answered, gives */
byte asked;
byte page = NONE;               /* shared: ticks until the deadline; NONE: there is none */
bool stopping;                  /* shared, the holder process's: it has begun to stop the command */
bool front_stops;               /* shared, the front process's: so has that */

bool armed;                     /* the front process sleeps with a timer */
bool front_busy, holder_busy = true;        /* in the middle of something */
bool front_killing, holder_killing;         /* kills until the tree is dead */
bool guarding;                              /* the holder process: in Supervisor::finish() */
/* for the proof: a guard sent the stop signal; the command had ended before that, and while the
   front process lived */
bool stop_sent, own_end;
byte renewals = RENEWALS, grants = 2, pauses = PAUSES, kills = KILLS;

chan to_front = [4] of { mtype };
chan to_holder = [2] of { mtype };

#define lives(p) (p == RUNNING || p == DYING)
#define is_over(guard) (guard == DEAD || guard == ENDED)
#define tree_waits (command == FORKED || command == READY)
#define tree_dead (!tree_waits && !lives(command) && !lives(descendant))
#define tree_runs (tree_waits || command == RUNNING || descendant == RUNNING)
#define passed(limit) (page != NONE && page <= limit)

inline check() {
  assert(!lives(command) || lease > 0);
#ifndef COMMAND_ONLY
  assert(!lives(descendant) || own_end || lease > 0);
#endif
}

inline kill_command() {
  d_step {
    command = (tree_waits -> GONE : (command == RUNNING -> DYING : command))
  }
}

inline kill_descendant() {
  d_step {
    descendant = (descendant == RUNNING -> DYING : descendant)
  }
}

/* PDEATHSIG: set by the child between FORKED and READY. */
inline kill_holder() {
  d_step {
    holder = (is_over(holder) -> holder : DEAD);
#ifndef NO_PDEATHSIG
    if
    :: holder == DEAD && command == READY -> command = GONE
    :: holder == DEAD && command == RUNNING -> command = DYING
    :: else
    fi
#endif
  }
}

/* ---- The front process: Front::guard(). ---- */

#ifdef NO_WATCHDOG
#define front_must_stop false
#define front_must_kill false
#else
#define front_must_stop (armed && !front_stops && !stopping && passed(FRONT_STOP_AT))
#define front_must_kill (armed && passed(FRONT_KILL_AT))
#endif
#define holder_ended (holder == DEAD && len(to_front) == 0)
#define front_wakes (len(to_front) > 0 || holder_ended || front_must_stop || front_must_kill)
#define kill_due (tree_dead || tree_runs)
#define front_due (front == ALIVE && (front_busy || (front_killing -> kill_due : front_wakes)))

/* The timer is set by what the page says now; a page that changes later does not wake the front
   process. */
#define arm armed = (page != NONE)
inline front_sleeps() {
  arm;
  front_busy = false
}

inline front_kills() {
  d_step { front_killing = true; front_busy = false };
  do
  :: tree_dead -> break
  :: tree_runs -> kill_command(); kill_descendant()
  od
}

active proctype Front() provided (front == ALIVE) {
  do
  :: atomic { to_front?GRANTED -> to_holder!GO; front_sleeps() }
  :: atomic { to_front?WAITING -> front_sleeps() }
  :: atomic { to_front?STARTED -> front_sleeps() }
  :: to_front?REPORT -> break
  :: holder_ended -> front_kills(); break
  :: atomic { front_must_stop -> front_busy = true; front_stops = true };
    atomic { stop_sent = true; front_sleeps() }
  :: atomic { front_must_kill -> front_busy = true };
    kill_holder();
    front_kills();
    break
  od;
  atomic { armed = false; front_killing = false; front = ENDED }
}

/* ---- The holder process: HeldCommand::start(), Holder::hold(), LeaseKeeper and Supervisor::finish(). ---- */

#ifdef STOP_UNTOLD
#define told false
#else
#define told front_stops
#endif
/* the holder process asks the kernel when the command has ended */
#ifdef FRONT_UNSEEN
#define front_killed false
#else
#define front_killed (front == DEAD)
#endif
#define ended_by_itself (command == GONE && !stopping && !told && !front_killed)
#define holder_must_stop (!stopping && (passed(STOP_AT) || told))
#define holder_must_kill (is_over(front) || (stopping && passed(KILL_AT)))
#define stopped_in_time (stopping && tree_dead)
#define timed_out (renewal != NOTHING && asked < TTL - TIMEOUT)
#define holder_wakes (ended_by_itself || stopped_in_time || holder_must_kill || \
  holder_must_stop || timed_out)
#define holder_due (holder == ALIVE && \
  (holder_busy || (guarding && (holder_killing -> kill_due : holder_wakes))))

inline drop() {
  kill_command();
  page = NONE;
  release()
}

inline release() {
  d_step { renewal = NOTHING; asked = 0; lease = 0; check() }
}

inline holder_kills() {
  d_step { stop_sent = true; holder_killing = true; holder_busy = false };
#if defined(RELEASE_EARLY)
  kill_command();
  kill_descendant()
#elif defined(KILL_COMMAND_ONLY)
  kill_command();
  !tree_waits && !lives(command)
#else
  do
  :: tree_dead -> break
  :: tree_runs -> kill_command(); kill_descendant()
  od
#endif
}

active proctype Holder() provided (holder == ALIVE) {
  skip;
wait:
  atomic { grants--; lease = TTL; asked = TTL };
#ifndef DEADLINE_AFTER_GO
  page = asked;
#endif
  command = FORKED;
  atomic { to_front!GRANTED; holder_busy = false };
  if
  :: atomic { to_holder?GO -> holder_busy = true }
  :: atomic { is_over(front) -> holder_busy = true }; drop(); goto report
  :: atomic { front == STOPPED -> holder_busy = true };         /* go_timeout: the job is stopped */
    drop();
    holder_busy = false;
    if
    :: atomic { to_holder?GO -> holder_busy = true }
    :: atomic { is_over(front) -> holder_busy = true }; goto report
    fi;
    to_front!WAITING;
    if
    :: grants > 0 -> goto wait
    :: else -> goto report
    fi
  fi;
  if
  :: asked <= STOP_AT || told -> drop(); goto report
  :: else
  fi;
#ifdef DEADLINE_AFTER_GO
  page = asked;
#endif
  gate = true;
  atomic { to_front!STARTED; grants = 0; asked = 0; guarding = true; holder_busy = false };
  do
  :: atomic { ended_by_itself || stopped_in_time -> holder_busy = true; break }
  :: !ended_by_itself && !stopped_in_time && holder_must_kill -> holder_kills(); break
  :: atomic { !ended_by_itself && !holder_must_kill && holder_must_stop ->
      holder_busy = true; stopping = true };
    atomic { stop_sent = true; holder_busy = false }
  :: d_step { renewals > 0 && renewal == NOTHING && page > 0 && page <= RENEW_AT ->
      renewals--; renewal = ASKED; asked = TTL }
  :: d_step { renewal == APPLIED && page > 0 && !timed_out ->
#ifdef DEADLINE_FROM_REPLY
      asked = TTL;
#endif
      page = (asked > page -> asked : page);
      renewal = NOTHING; asked = 0 }
  :: d_step { timed_out -> renewal = NOTHING; asked = 0 }
  od;
  page = NONE;
  release();
report:
  atomic { to_front!REPORT; guarding = false; holder_busy = false; holder_killing = false;
    holder = ENDED }
}

/* ---- The command, the servers, time, and what may go wrong. ---- */

#define overdue (slow && (command == DYING || descendant == DYING))
#define due (front_due || holder_due || overdue || command == FORKED)
#define time_passes (lease > 0 || (page != NONE && page > 0) || asked > 0)

#ifdef BOTH_KILLED
#define may_kill(other) true
#else
#define may_kill(other) (other == ALIVE || other == ENDED)
#endif
#ifdef BOTH_STOPPED
#define may_stop(other) true
#else
#define may_stop(other) (other == ALIVE || other == ENDED)
#endif

active proctype World() {
  if
  :: endless = true
  :: endless = false
  fi;
  do
  /* The command. */
#ifdef NO_GETPPID
  :: d_step { command == FORKED -> command = READY }
#else
  :: d_step { command == FORKED -> command = (holder == DEAD -> GONE : READY) }
#endif
  :: d_step { command == READY && gate -> command = RUNNING; check() }
  :: d_step { command == READY && !gate && holder == DEAD -> command = GONE }
  :: d_step { command == RUNNING && descendant == ABSENT -> descendant = RUNNING; check() }
  :: d_step { command == RUNNING && !endless ->
      own_end = (!stop_sent && front != DEAD); command = GONE }
  :: d_step { descendant == RUNNING && !endless -> descendant = GONE }
  :: d_step { command == DYING -> command = GONE }
  :: d_step { descendant == DYING -> descendant = GONE }
  /* The servers. */
  :: d_step { renewal == ASKED && lease > 0 -> renewal = APPLIED; lease = TTL }
  /* Time. */
  :: d_step { time_passes && !due ->
      slow = (command == DYING || descendant == DYING);
      lease = (lease > 0 -> lease - 1 : 0);
      page = (page != NONE && page > 0 -> page - 1 : page);
      asked = (asked > 0 -> asked - 1 : 0);
      check() }
  /* Faults. */
  :: d_step { pauses > 0 && front == ALIVE && may_stop(holder) -> pauses--; front = STOPPED }
  /* SIGCHLD wakes the front process */
  :: d_step { pauses > 0 && holder == ALIVE && may_stop(front) -> pauses--; holder = STOPPED; arm }
  :: d_step { front == STOPPED -> front = ALIVE; arm }
  :: d_step { holder == STOPPED -> holder = ALIVE; arm }
  :: d_step { kills > 0 && (front == ALIVE || front == STOPPED) && may_kill(holder) ->
      kills--; front = DEAD }
  :: atomic { kills > 0 && (holder == ALIVE || holder == STOPPED) && may_kill(front) ->
      kills--; kill_holder() }
  /* The end. */
  :: timeout ->
    assert(is_over(front) && is_over(holder) && lease == 0);
    assert(!tree_waits && !lives(command));
#ifndef COMMAND_ONLY
    assert(!lives(descendant) || own_end);
#endif
    break
  od
}
