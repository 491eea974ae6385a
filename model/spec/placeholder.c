/* replaced by the first source of this folder */ typedef int msim_placeholder;
