/*
 * The users of a lease (U1-U5 in docs/protocol.md): one key on three servers, the keeper of a lease
 * with its command, two users that come and go, and a rival that wants the lock.
 *
 * Checked: the rival never has a quorum while the keeper's command or a user works (exclusion).
 * Once keeper and users have ended, and their ends have passed, the key is free at every server
 * (freedom). And where nothing goes wrong, it is free as soon as the last of them has ended
 * (PROMPT).
 *
 * Time has no measure. A server that answers an extension has an end of its own for the process
 * that asked, and the process relies on it: a claim. Claims pass one by one, at any time, and a
 * process without a quorum of them stops. An end may pass at its server at any time after the
 * claim, and a lease after the claims to all ends that it spans: the drift sees to that (R1). So
 * any ttl, any order of ends and any delay of an answer is among the schedules.
 *
 * Requests overtake each other and are lost. What a process sends when it ends, and the heals of
 * one that has worked, take effect at each server at any later time: once, often or never. So a
 * process that ends stands for one that is killed, too. An extension that takes effect after its
 * process has ended leaves an end that is not claimed, and so does a lost answer.
 *
 * A server may lose all its data, and then grants nothing while a claim from before stands (R7);
 * and it may lose the record of the lease alone. Servers are alike, so it is the first. Users are
 * alike, so the second comes after the first.
 *
 * Not modelled: how the lease was acquired, shares and slots, --min-hold, stop requests, extending
 * by hand, breaking a lock, a cluster whose slots move (D1), the expiry of tombstones, a second
 * loss of either kind, and an attempt of the rival during which a server that has granted it
 * restarts.
 *
 * Each of these macros changes the design or the faults; run.sh says what must come of it:
 *   RELEASE_IGNORES_USERS  a keeper's release deletes the lease
 *   NO_QUORUM              a user works with the registration of a single server
 *   DEADLINE_FROM_PTTL     a user relies on the end of the lease, while its own may be nearer
 *   UNDO_BESIDE_USERS      an undo, which knows no users, follows a keeper's release
 *   END_DELETES            a user's end deletes the lease beside others
 *   LOST_IS_NONE           a release takes a lost record for one without users
 *   HEAL_FORGETS           a heal restores a lost record as one without users
 *   NO_GUARD               a server that lost its data grants at once
 *   USERS_STAY             the end of the last user after the keeper deletes nothing
 *   TOMBSTONE_BESIDE_USERS a keeper's release leaves a tombstone only where it finds users
 *   NO_RIVAL               for freedom: with a rival no schedule ends; heals are not late then
 *   PROMPT                 nothing passes or expires; each end is sent once, and it arrives; then
 *                          a quorum is free
 *   EVERY_SERVER           every server is
 *   USERS, WIPES, LOSSES   how many there may be
 */

#ifndef USERS
#define USERS 2
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif

#define KEEPER 0
#define SERVERS 3

/* Sets of processes and of servers are bits of a byte. */
#define bit_of(x) (1 << (x))
#define has(set, x) (((set) >> (x)) & 1)
#define users_in(set) ((set) & ~bit_of(KEEPER))
#define is_quorum(set) (((set) & ((set) - 1)) != 0)

mtype = { OUT, JOINING, WORKING, REFUSED, OVER };           /* a process; REFUSED: never worked */
mtype = { FREE, LEASE, RIVAL };                             /* a key */

mtype phase[3] = OUT;
byte claim[3];                  /* the servers on whose end the process relies */
byte rival;                     /* the servers whose grant the rival has */

/* At each server: the key, and with the lease its record. */
mtype key[SERVERS] = FREE;
bool known[SERVERS];            /* the record is there */
bool left[SERVERS];             /* the record shows that the keeper has left */
byte listed[SERVERS];           /* the users in the record */
byte unlisted[SERVERS];         /* users that were in a record that was lost */
bool tombstone[SERVERS];
byte stale[SERVERS];            /* the processes whose claims are older than its loss of data */

#ifdef PROMPT
byte sent[SERVERS];             /* the processes whose end is on its way there */
#endif
#ifdef UNDO_BESIDE_USERS
bool undo[SERVERS];             /* one is on its way there */
#endif

byte wipes = WIPES, losses = LOSSES;
byte cut_off;                   /* the processes that had ended when a server lost its data */

#define works(x) (phase[x] == WORKING)
#define lives(x) (phase[x] == JOINING || phase[x] == WORKING)
#define is_over(x) (phase[x] == OVER || phase[x] == REFUSED)
#define claimants(s) (has(claim[0], s) | (has(claim[1], s) << 1) | (has(claim[2], s) << 2))

inline check() {
  assert(!is_quorum(rival) || !(works(0) || works(1) || works(2)))
}

/* ---- A server: users.lua, extend.lua, release.lua, heal.lua. ---- */

#ifdef LOST_IS_NONE
#define may_have_users(s) (listed[s] != 0)
#else
#define may_have_users(s) (listed[s] != 0 || unlisted[s] != 0 || !known[s])
#endif
#ifdef RELEASE_IGNORES_USERS
#define release_deletes(s) true
#else
#define release_deletes(s) (!may_have_users(s))
#endif
#if defined(END_DELETES)
#define end_deletes(s) true
#elif defined(USERS_STAY)
#define end_deletes(s) false
#else
#define end_deletes(s) (left[s] && !may_have_users(s))
#endif
#ifdef NO_GUARD
#define may_grant(s) true
#else
#define may_grant(s) (stale[s] == 0)
#endif

/* The processes whose ends the lease spans: all that extended it; after the keeper's release those
   of which the record shows that they remain. */
#define spanned(s) (left[s] && known[s] -> listed[s] | unlisted[s] : ~stale[s])

inline forget(s) { known[s] = false; left[s] = false; listed[s] = 0; unlisted[s] = 0 }
inline delete(s) { key[s] = FREE; forget(s) }

/* The keeper's release. */
inline release(s, by_hand) {
#ifndef TOMBSTONE_BESIDE_USERS
  tombstone[s] = true;
#endif
  if
  :: key[s] == LEASE && !left[s] ->
    tombstone[s] = (tombstone[s] || by_hand || may_have_users(s));
#ifdef UNDO_BESIDE_USERS
    undo[s] = true;
#endif
    if
    :: release_deletes(s) -> delete(s)
    :: else -> left[s] = true
    fi
  :: else
  fi
}

/* The end of a user. */
inline end_use(u, s) {
  listed[s] = listed[s] & ~bit_of(u);
  if
  :: key[s] == LEASE && end_deletes(s) -> delete(s)
  :: else
  fi
}

#ifdef PROMPT
#define end_arrives(x, s) has(sent[s], x)
#else
/* Only where it changes something, so that the schedule can end. */
#define end_arrives(x, s) (is_over(x) && key[s] == LEASE && \
  (x == KEEPER -> !left[s] : end_deletes(s) || has(listed[s], x)))
#endif

#define is_listed(x, s) (x == KEEPER || has(listed[s], x))
#define accepts(x, s) (key[s] == LEASE && !(left[s] && (x == KEEPER || phase[x] == JOINING)))

inline extend(x, s) {
  listed[s] = listed[s] | users_in(bit_of(x));
  if
  :: true                                       /* the answer is lost */
  :: claim[x] = claim[x] | bit_of(s);
    unlisted[s] = unlisted[s] & ~bit_of(x);
    stale[s] = stale[s] & ~bit_of(x)
  fi
}

/* A connection does not outlast the process at its other end. */
#ifdef NO_RIVAL
#define heals(x, s) works(x)
#else
#define heals(x, s) (works(x) || phase[x] == OVER && !(s == 0 && has(cut_off, x)))
#endif
#define may_heal(x, s) (heals(x, s) && !(tombstone[s] && x == KEEPER) && \
  (key[s] == FREE || key[s] == LEASE && !known[s]))

inline heal(x, s) {
#ifndef HEAL_FORGETS
  unlisted[s] = (key[s] == LEASE -> users_in(claimants(s) & ~stale[s]) : 0);
#endif
  key[s] = LEASE;
  known[s] = true;
  left[s] = (left[s] || tombstone[s]);
  listed[s] = (works(x) -> listed[s] | users_in(bit_of(x)) : listed[s])
}

/* ---- A process. ---- */

#ifdef NO_QUORUM
#define may_work(x) (claim[x] != 0)
#else
#define may_work(x) is_quorum(claim[x])
#endif

inline pass(x, s) {
  claim[x] = claim[x] & ~bit_of(s);
  stale[s] = stale[s] & ~bit_of(x);
  unlisted[s] = unlisted[s] & ~bit_of(x)
}

inline end(x) {
  phase[x] = (works(x) -> OVER : REFUSED);
#ifdef PROMPT
  claim[x] = 0;
  sent[0] = sent[0] | bit_of(x); sent[1] = sent[1] | bit_of(x); sent[2] = sent[2] | bit_of(x)
#else
  pass(x, 0); pass(x, 1); pass(x, 2)
#endif
}

#ifdef DEADLINE_FROM_PTTL
#define may_pass(x, s) true
#else
#define may_pass(x, s) (!has(claim[x], s))
#endif

proctype Process(byte x) {
  do
  :: d_step { phase[x] == OUT && x <= USERS && (x == 1 || phase[1] != OUT) -> phase[x] = JOINING }
  :: d_step { phase[x] == JOINING && may_work(x) -> phase[x] = WORKING; check() }
  :: d_step { lives(x) -> end(x) }
  od
}

/* Between a process and a server. */
proctype Link(byte x; byte s) {
  do
  :: atomic { lives(x) && accepts(x, s) && !(has(claim[x], s) && is_listed(x, s)) -> extend(x, s) }
  :: d_step { may_heal(x, s) -> heal(x, s) }
  :: atomic { end_arrives(x, s) ->
      if
      :: x == KEEPER -> release(s, false)
      :: x == KEEPER -> release(s, true)
      :: else -> end_use(x, s)
      fi
#ifdef PROMPT
      ; sent[s] = sent[s] & ~bit_of(x) }
#else
      }
  :: d_step { has(claim[x], s) ->
      pass(x, s);
      if
      :: works(x) && !may_work(x) -> end(x)
      :: else
      fi }
  :: d_step { has(listed[s], x) && may_pass(x, s) -> listed[s] = listed[s] & ~bit_of(x) }
#endif
  od
}

proctype Server(byte s) {
  do
#ifdef PROMPT
  :: false
#else
  :: d_step { key[s] == LEASE && (spanned(s) & claimants(s)) == 0 -> delete(s) }
#endif
#ifndef NO_RIVAL
  :: d_step { key[s] == FREE && may_grant(s) ->
      key[s] = RIVAL; rival = rival | bit_of(s); check() }
  :: d_step { key[s] == RIVAL && !has(rival, s) -> key[s] = FREE }
#endif
#ifdef UNDO_BESIDE_USERS
  :: d_step { undo[s] ->
      undo[s] = false;
      if
      :: key[s] == LEASE -> delete(s)
      :: else
      fi }
#endif
  od
}

/* Faults, and the end. */
proctype World() {
  do
  :: d_step { wipes > 0 ->
      wipes--;
      cut_off = (phase[0] == OVER) | (phase[1] == OVER) << 1 | (phase[2] == OVER) << 2;
      stale[0] = claimants(0);
      rival = (is_quorum(rival) -> rival : rival & ~bit_of(0));
      tombstone[0] = false;
      delete(0) }
  /* The rival's attempt fails, or its lease ends. */
  :: d_step { rival != 0 -> rival = 0 }
  :: d_step { losses > 0 && key[0] == LEASE && known[0] -> losses--; forget(0) }
  :: timeout ->
    assert(phase[KEEPER] == OVER);
#if defined(PROMPT) && !defined(EVERY_SERVER)
    assert((key[0] == FREE) + (key[1] == FREE) + (key[2] == FREE) >= 2);
#else
    assert(key[0] == FREE && key[1] == FREE && key[2] == FREE);
#endif
    break
  od
}

inline grant(s) { key[s] = LEASE; known[s] = true; claim[KEEPER] = claim[KEEPER] | bit_of(s) }

/* One server may have missed the grant. */
init {
  atomic {
    phase[KEEPER] = WORKING;
    if
    :: grant(0); grant(1); grant(2)
    :: grant(0); grant(1)
    :: grant(1); grant(2)
    fi;
    run Process(0); run Process(1); run Process(2);
    run Link(0, 0); run Link(0, 1); run Link(0, 2);
    run Link(1, 0); run Link(1, 1); run Link(1, 2);
    run Link(2, 0); run Link(2, 1); run Link(2, 2);
    run Server(0); run Server(1); run Server(2);
    run World()
  }
}
