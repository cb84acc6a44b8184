/*
 * The supervision of `run`: front, holder, the command with one descendant, and the lease at the servers.
 *
 * Checked: while a process of the command runs, the lease stands (neither expired nor released); and everything ends: where
 * nothing can move any more, no guard waits and nothing of a command that was to be stopped is left.
 *
 * Time is counted in ticks of a quarter margin. It passes only when no guard that can act has something to do, and a killed
 * process may take a tick to die. Everything else interleaves freely: each step of a guard may be followed by a pause
 * (SIGSTOP, later SIGCONT) or a kill (SIGKILL) of it; while one guard is paused or dead, the other is sound. A renewal may
 * be lost on its way, take effect unseen, or be confirmed, each at any later time.
 *
 * Not modelled: signals of the user, --on-lost term and warn, processes that cannot be killed, a lock deleted at the servers.
 *
 * Each of these macros changes the design or the faults; run.sh says what must come of it:
 *   NO_WATCHDOG          front watches no deadline
 *   FRONT_KILLS_LATE     front kills at the deadline, not half a margin before it
 *   RELEASE_EARLY        the holder releases when it has sent KILL, without waiting for the death
 *   KILL_COMMAND_ONLY    the holder kills and awaits the command alone, not the tree
 *   DEADLINE_FROM_REPLY  the deadline counts from the reply, not from the question
 *   DEADLINE_AFTER_GO    front learns the deadline only when the command has been started
 *   STOP_UNTOLD          front does not tell the holder that it has sent the stop signal
 *   NO_PDEATHSIG, NO_GETPPID   the command does not die with its parent; does not look whether it is dead already
 *   BOTH_KILLED, BOTH_STOPPED  faults may hit both guards at once
 *   COMMAND_ONLY         demand it of the command itself only, not of its descendant
 */

#define TTL 12
#define GRACE 2
#define MARGIN 4
#define NONE 255

#define STOP_AT (GRACE + MARGIN)          /* deadline - grace - margin: the holder's stop signal */
#define FRONT_STOP_AT (STOP_AT - 1)       /* front's, a quarter of the margin later */
#define KILL_AT MARGIN                    /* the holder's KILL */
#ifdef FRONT_KILLS_LATE
#define FRONT_KILL_AT 0
#else
#define FRONT_KILL_AT (MARGIN / 2)        /* front's */
#endif
#define RENEW_AT (TTL - TTL / 3)

mtype = { ALIVE, STOPPED, DEAD, ENDED };                  /* a guard; DEAD: killed */
mtype = { ABSENT, READY, RUNNING, DYING, GONE };          /* a process of the command; READY: forked, waits for the gate */
mtype = { GRANTED, GO, WAITING, STARTED, REPORT };        /* messages */

mtype front = ALIVE, holder = ALIVE;
mtype command = ABSENT, descendant = ABSENT;
bool command_slow, descendant_slow;                       /* has been dying for a tick */

byte lease;                     /* ticks until a quorum of servers has let it expire; 0: free */
byte page = NONE;               /* shared: ticks until the deadline; NONE: there is none */
bool stopping;                  /* shared, the holder's: it has begun to stop the command */
bool front_stops;               /* shared, front's: so has front */
byte asked;                     /* ticks until the deadline that the renewal under way would give */
bool renewing;
byte renewals = 2, grants = 2, pauses = 2;
#ifdef BOTH_KILLED
byte kills = 2;
#else
byte kills = 1;
#endif

bool armed;                     /* front sleeps with a timer */
bool front_busy, holder_busy = true;              /* in the middle of something */
bool front_killing, holder_killing;             /* kills until the tree is dead */
bool guarding;                                  /* the holder: in Supervisor::finish() */
bool gate, child_over = true, pdeathsig;
bool stop_sent, own_end;        /* for the proof: some guard sent the stop signal; the command ended before that */
bool over;

chan to_front = [6] of { mtype, byte };
chan to_holder = [4] of { mtype, byte };

#define lives(p) (p == RUNNING || p == DYING)
#define front_gone (front == DEAD || front == ENDED)
#define tree_dead (command != READY && !lives(command) && !lives(descendant))
#define tree_runs (command == READY || command == RUNNING || descendant == RUNNING)
#define passed(limit) (page != NONE && page <= limit)

inline check() {
  assert(!lives(command) || lease > 0);
#ifndef COMMAND_ONLY
  assert(!lives(descendant) || own_end || lease > 0);
#endif
}

inline kill_command() {
  d_step {
    if
    :: command == READY -> command = GONE
    :: command == RUNNING -> command = DYING
    :: else
    fi
  }
}

inline kill_descendant() {
  d_step {
    if
    :: descendant == RUNNING -> descendant = DYING
    :: else
    fi
  }
}

inline kill_holder() {
  d_step {
    if
    :: holder == ALIVE || holder == STOPPED ->
      holder = DEAD;
      if
      :: pdeathsig && command == READY -> command = GONE
      :: pdeathsig && command == RUNNING -> command = DYING
      :: else
      fi
    :: else
    fi
  }
}

/* ---- The command: as in ReadyCommand, then whatever it likes. ---- */

proctype Command() {
  bool endless;
  if                             /* ignores the stop signal, and never ends by itself */
  :: endless = true
  :: endless = false
  fi;
  {
#ifndef NO_PDEATHSIG
    d_step { pdeathsig = true }
#endif
#ifndef NO_GETPPID
    if
    :: holder == DEAD -> command = GONE
    :: else
    fi;
#endif
    if
    :: atomic { gate -> command = RUNNING; check() }
    :: !gate && holder == DEAD -> command = GONE
    fi;
    do
    :: descendant == ABSENT -> atomic { command == RUNNING -> descendant = RUNNING; check() }
    :: !endless -> atomic { command == RUNNING -> own_end = !stop_sent; command = GONE }
    :: false
    od
  } unless { command == DYING || command == GONE };
  do
  :: command == DYING -> command = GONE
  :: command == GONE -> break
  od;
  child_over = true
}

proctype Descendant() {
  do
  :: descendant == RUNNING -> descendant = GONE      /* by itself, or of the stop signal; it need not */
  :: descendant == DYING -> descendant = GONE
  :: over -> break
  od
}

/* ---- Front: Front::guard(). ---- */

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

inline front_sleeps() {
  d_step { armed = (page != NONE); front_busy = false }
}

inline front_kills() {
  d_step { front_killing = true; front_busy = false };
  do
  :: tree_dead -> break
  :: tree_runs -> kill_command(); kill_descendant()
  od
}

proctype Front() provided (front != STOPPED) {
  byte question;
  {
    do
    :: atomic { to_front?GRANTED(question) -> front_busy = true }; to_holder!GO(question); front_sleeps()
    :: atomic { to_front?WAITING(_) -> front_busy = true }; front_sleeps()
    :: atomic { to_front?STARTED(_) -> front_busy = true }; front_sleeps()
    :: to_front?REPORT(_) -> break
    :: atomic { holder_ended -> front_busy = true }; front_kills(); break
    :: atomic { front_must_stop -> front_busy = true };
#ifndef STOP_UNTOLD
      front_stops = true;
#endif
      stop_sent = true;
#ifdef STOP_UNTOLD
      front_stops = true;
#endif
      front_sleeps()
    :: atomic { front_must_kill -> front_busy = true }; kill_holder(); front_kills(); break
    od;
    front = ENDED
  } unless { front == DEAD }
}

/* ---- The holder: LeaseKeeper, and Holder::run_under() with Supervisor. ---- */

#ifdef STOP_UNTOLD
#define told false
#else
#define told front_stops
#endif
#define ended_by_itself (command == GONE && !stopping && !told)
#define holder_must_stop (!stopping && (passed(STOP_AT) || told))
#define holder_must_kill (front_gone || (stopping && passed(KILL_AT)))
#define stopped_in_time (stopping && tree_dead)
#define holder_wakes (ended_by_itself || holder_must_stop || holder_must_kill || stopped_in_time)
#define holder_due (holder == ALIVE && (holder_busy || (guarding && (holder_killing -> kill_due : holder_wakes))))

proctype Keeper() provided (holder != STOPPED) {
  {
    do
    :: !guarding -> break
    :: atomic { renewals > 0 && page > 0 && page <= RENEW_AT -> renewals--; asked = TTL; renewing = true };
      if
      :: atomic { lease > 0 && guarding -> lease = TTL };      /* at a quorum, now or later */
        if
        :: atomic { page != NONE && page > 0 && guarding ->    /* the answer is there, now or later */
#ifdef DEADLINE_FROM_REPLY
            asked = TTL;
#endif
            if
            :: asked > page -> page = asked
            :: else
            fi }
        :: true
        fi
      :: true
      fi;
      atomic { asked = 0; renewing = false }
    od
  } unless { holder == DEAD || holder == ENDED || !guarding };
  atomic { asked = 0; renewing = false }
}

inline holder_kills() {
  d_step { stop_sent = true; holder_killing = true; holder_busy = false };
#if defined(RELEASE_EARLY)
  kill_command();
  kill_descendant()
#elif defined(KILL_COMMAND_ONLY)
  kill_command();
  command == GONE
#else
  do
  :: tree_dead -> break
  :: tree_runs -> kill_command(); kill_descendant()
  od
#endif
}

inline drop() {
  kill_command();
  child_over
}

inline release() {
  d_step { lease = 0; check() }
}

proctype Holder() provided (holder != STOPPED) {
  byte question;
  {
    skip;
again:
    grants--;
    lease = TTL;
#ifndef DEADLINE_AFTER_GO
    page = TTL;
#endif
    atomic { command = READY; child_over = false; gate = false; pdeathsig = false; run Command() };
    question++;
    to_front!GRANTED(question);
    holder_busy = false;
    if
    :: to_holder?GO(eval(question)) -> holder_busy = true
    :: front_gone -> holder_busy = true; drop(); page = NONE; release(); goto report
    :: front == STOPPED ->                                     /* its patience is over: the job is stopped */
      holder_busy = true;
      drop();
      page = NONE;
      release();
      holder_busy = false;
      if
      :: to_holder?GO(eval(question)) -> holder_busy = true
      :: front_gone -> holder_busy = true; goto report
      fi;
      to_front!WAITING(0);
      if
      :: grants > 0 -> goto again
      :: else -> goto report
      fi
    fi;
    if
    :: lease == 0 || passed(STOP_AT) || told -> drop(); page = NONE; release(); goto report
    :: else
    fi;
#ifdef DEADLINE_AFTER_GO
    page = lease;
#endif
    gate = true;
    to_front!STARTED(0);
    atomic { guarding = true; run Keeper() };
    do
    :: holder_busy = false;
      atomic { holder_wakes -> holder_busy = true };
      if
      :: ended_by_itself || stopped_in_time -> break
      :: !ended_by_itself && !stopped_in_time && holder_must_kill -> holder_kills(); break
      :: !ended_by_itself && !holder_must_kill && holder_must_stop -> stopping = true; stop_sent = true
      :: else
      fi
    od;
    guarding = false;
    page = NONE;
    release();
report:
    to_front!REPORT(0);
    holder = ENDED
  } unless { holder == DEAD }
}

/* ---- Time, and what may go wrong. ---- */

#define overdue ((command == DYING && command_slow) || (descendant == DYING && descendant_slow))
#define due (front_due || holder_due || overdue)
#define guards_over ((front == DEAD || front == ENDED) && (holder == DEAD || holder == ENDED))

proctype Time() {
  do
  :: d_step {
      (lease > 0 || (page != NONE && page > 0)) && !due ->
      command_slow = (command == DYING);
      descendant_slow = (descendant == DYING);
      lease = (lease > 0 -> lease - 1 : 0);
      page = (page != NONE && page > 0 -> page - 1 : page);
      asked = (asked > 0 -> asked - 1 : 0);
      check()
    }
  :: atomic { guards_over && lease == 0 && command != DYING && descendant != DYING ->
      assert(command != RUNNING && command != READY);
#ifndef COMMAND_ONLY
      assert(descendant != RUNNING || own_end);
#endif
      over = true;
      break
    }
  od
}

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

proctype Faults() {
  do
  :: atomic { pauses > 0 && front == ALIVE && may_stop(holder) -> pauses--; front = STOPPED }
  :: atomic { pauses > 0 && holder == ALIVE && may_stop(front) -> pauses--; holder = STOPPED }
  :: d_step { front == STOPPED -> front = ALIVE }
  :: d_step { holder == STOPPED -> holder = ALIVE }
  :: atomic { kills > 0 && (front == ALIVE || front == STOPPED) && may_kill(holder) -> kills--; front = DEAD }
  :: atomic { kills > 0 && (holder == ALIVE || holder == STOPPED) && may_kill(front) -> kills--; kill_holder() }
  :: over -> break
  od
}

init {
  atomic { run Front(); run Holder(); run Descendant(); run Time(); run Faults() }
}
