/* The output of seq(1): large text whose every byte is known. */
#ifndef CONTRACT_LINES_H
#define CONTRACT_LINES_H

/* So many lines are a little more than 1 MiB. */
#define LINES_MIB 170000
#define LINES_MIB_TEXT "170000"

char *lines_make(int count); /* "1\n2\n…"; free(); NULL when out of memory */

#endif
