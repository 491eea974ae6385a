#include <stdio.h>

int main(void)
{
    puts("msim " MSIM_VERSION);
    return 0;
}
